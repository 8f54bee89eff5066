import type { Clock } from '../../../lambdas/entry/ports.ts';
import type { VirtualTime } from './virtual-time.ts';

export type Ending = 'returned' | 'threw' | 'killed';

/**
 * One invocation of a function, as Lambda runs it. It has its own clock and is killed at its timeout. Work that it did not
 * await is frozen with its sandbox when it returns, and may continue much later.
 */
export class Invocation {
  readonly id: string;
  readonly tenant: string;
  readonly runId: string | undefined;
  /** The sandbox: the next invocation in it finds the state of the previous one. */
  readonly machine: number;
  readonly clock: Clock;
  readonly beganAtMs: number;
  /** The machine does not stop functions at their timeout: they still reach the store and the targets. */
  readonly outlivesTimeout: boolean;
  readonly #time: VirtualTime;
  readonly #frozen: (() => void)[] = [];
  readonly #timeoutMs: number;
  #endsAtMs: number;
  #state: 'running' | 'returned' | 'killed' = 'running';
  #thawed = false;
  #pausedUntilMs = 0;
  /** Calls with an effect that have no reply yet. */
  openCalls = 0;
  #onEnd: (ending: Ending) => void = () => {};

  constructor(
    time: VirtualTime,
    facts: {
      id: string;
      tenant: string;
      runId?: string;
      machine: number;
      skewMs: number;
      timeoutMs: number;
      outlivesTimeout: boolean;
    },
  ) {
    this.#time = time;
    this.id = facts.id;
    this.tenant = facts.tenant;
    this.runId = facts.runId;
    this.machine = facts.machine;
    this.outlivesTimeout = facts.outlivesTimeout;
    this.clock = { now: () => time.now() + facts.skewMs };
    this.beganAtMs = time.now();
    this.#timeoutMs = facts.timeoutMs;
    this.#endsAtMs = time.now() + facts.timeoutMs;
    if (facts.timeoutMs === Number.POSITIVE_INFINITY) return;
    time.after(facts.timeoutMs, () => {
      if (!this.outlivesTimeout && this.#state === 'running') this.kill();
    });
  }

  get isKilled(): boolean {
    return this.#state === 'killed';
  }

  /** The handler has returned: none of its work should still be open. */
  get hasReturned(): boolean {
    return this.#state === 'returned';
  }

  get remainingMs(): number {
    return this.#endsAtMs - this.#time.now();
  }

  onEnd(then: (ending: Ending) => void): void {
    this.#onEnd = then;
  }

  kill(): void {
    if (this.#state === 'killed') return;
    const wasRunning = this.#state === 'running';
    this.#state = 'killed';
    if (wasRunning) this.#onEnd('killed');
  }

  /** The handler has returned. Work that it did not await freezes, and continues if the sandbox is used again. */
  end(ending: 'returned' | 'threw', thawsAfterMs: number | undefined): void {
    if (this.#state !== 'running') return;
    this.#state = 'returned';
    this.#onEnd(ending);
    if (thawsAfterMs === undefined) return;
    this.#time.after(thawsAfterMs, () => {
      this.#thawed = true;
      // The sandbox runs until the timeout of the invocation that thawed it.
      this.#endsAtMs = this.#time.now() + this.#timeoutMs;
      this.#time.after(this.#timeoutMs, () => this.kill());
      for (const run of this.#frozen.splice(0)) run();
    });
  }

  /** Pauses everything for a while, timers too: the machine is busy or suspended. */
  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#time.now() + ms);
  }

  /** Continues with `then`, after a pause or a thaw if necessary. A killed invocation never continues. */
  resume(then: () => void): void {
    if (this.#state === 'killed') return;
    const pausedForMs = this.#pausedUntilMs - this.#time.now();
    if (pausedForMs > 0) {
      this.#time.after(pausedForMs, () => this.resume(then));
      return;
    }
    if (this.#state === 'returned' && !this.#thawed) this.#frozen.push(then);
    else then();
  }
}

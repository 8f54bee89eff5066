import type { Clock } from '../../lambdas/entry/ports.ts';
import type { VirtualTime } from './virtual-time.ts';

export type Ending = 'returned' | 'threw' | 'died';

/**
 * One invocation of a function, as Lambda runs it: it has a clock of its own, is killed when its time is up, and what it
 * left unfinished when it answered is frozen with its sandbox, perhaps to go on much later.
 */
export class Invocation {
  readonly id: string;
  readonly tenant: string;
  readonly runId: string | undefined;
  /** The sandbox: the next invocation in it finds the state of the previous one. */
  readonly machine: number;
  readonly clock: Clock;
  readonly beganAtMs: number;
  /** A machine that does not stop functions after their timeout: they still reach the store and the targets. */
  readonly lingers: boolean;
  readonly #time: VirtualTime;
  readonly #frozen: (() => void)[] = [];
  readonly #timeoutMs: number;
  #endsAtMs: number;
  #state: 'at work' | 'over' | 'dead' = 'at work';
  #thawed = false;
  #stillUntilMs = 0;
  /** Calls that have an effect and whose reply is still to come. */
  underWay = 0;
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
      lingers: boolean;
    },
  ) {
    this.#time = time;
    this.id = facts.id;
    this.tenant = facts.tenant;
    this.runId = facts.runId;
    this.machine = facts.machine;
    this.lingers = facts.lingers;
    this.clock = { now: () => time.now() + facts.skewMs };
    this.beganAtMs = time.now();
    this.#timeoutMs = facts.timeoutMs;
    this.#endsAtMs = time.now() + facts.timeoutMs;
    time.after(facts.timeoutMs, () => {
      if (!this.lingers && this.#state === 'at work') this.die();
    });
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  /** It has answered: nothing of it should still be going on. */
  get isOver(): boolean {
    return this.#state === 'over';
  }

  get remainingMs(): number {
    return this.#endsAtMs - this.#time.now();
  }

  onEnd(then: (ending: Ending) => void): void {
    this.#onEnd = then;
  }

  die(): void {
    if (this.#state === 'dead') return;
    const wasAtWork = this.#state === 'at work';
    this.#state = 'dead';
    if (wasAtWork) this.#onEnd('died');
  }

  /** The handler has returned; work that it did not await freezes, and continues if the sandbox is used again. */
  answer(ending: 'returned' | 'threw', thawsAfterMs: number | undefined): void {
    if (this.#state !== 'at work') return;
    this.#state = 'over';
    this.#onEnd(ending);
    if (thawsAfterMs === undefined) return;
    this.#time.after(thawsAfterMs, () => {
      this.#thawed = true;
      // The sandbox lives on for as long as the invocation that thawed it.
      this.#endsAtMs = this.#time.now() + this.#timeoutMs;
      this.#time.after(this.#timeoutMs, () => this.die());
      for (const goOn of this.#frozen.splice(0)) goOn();
    });
  }

  /** Pauses everything for a while, timers too: the machine is busy, or asleep. */
  pause(ms: number): void {
    this.#stillUntilMs = Math.max(this.#stillUntilMs, this.#time.now() + ms);
  }

  /** Its continuation, at this moment of its life. A dead one never goes on. */
  goOn(then: () => void): void {
    if (this.#state === 'dead') return;
    const stillForMs = this.#stillUntilMs - this.#time.now();
    if (stillForMs > 0) {
      this.#time.after(stillForMs, () => this.goOn(then));
      return;
    }
    if (this.#state === 'over' && !this.#thawed) this.#frozen.push(then);
    else then();
  }
}

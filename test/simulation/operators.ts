import { isTerminal, type Run } from '../../lambdas/run/run.ts';
import type { Command } from '../../lambdas/run-changes/control-run.ts';
import type { MemoryRunStore } from '../fakes/memory-run-store.ts';
import type { Functions } from './functions.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const COMMANDS: readonly Command[] = [
  { kind: 'cancel', reason: 'not needed' },
  { kind: 'pause' },
  { kind: 'resume' },
  { kind: 'retry' },
  { kind: 'rollback', reason: 'was wrong' },
  { kind: 'signal', event: 'go', payload: { approvedBy: 'somebody' } },
];
const WAYS_ON = ['resume', 'resume', 'retry', 'rollback', 'cancel'] as const;
const INSISTS_AFTER_MS = 20_000;
const INSISTS_TIMES = 30;
/** Every reaction is a change that may be reacted to: without an end to it, people alone would keep a world busy. */
const REACTIONS_MAX = 40;

/** People, who say anything at any time, to runs in any state, sometimes twice. */
export class Operators {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  readonly #store: MemoryRunStore;
  #reactions = 0;

  constructor(time: VirtualTime, random: SeededRandom, functions: Functions, store: MemoryRunStore) {
    this.#time = time;
    this.#random = random;
    this.#functions = functions;
    this.#store = store;
  }

  sayAnything(): void {
    const runs = this.#runs();
    if (runs.length === 0) return;
    const { tenant, runId } = this.#random.pick(runs);
    const command = this.#random.pick(COMMANDS);
    const times = this.#random.chance(0.2) ? 2 : 1;
    for (let time = 0; time < times; time += 1) this.#functions.command({ tenant, runId }, command, () => {});
    // Operators usually resume what they have paused.
    if (command.kind !== 'pause' || this.#random.chance(0.3)) return;
    const back = this.#random.pick<Command>([
      { kind: 'resume' },
      { kind: 'retry' },
      { kind: 'cancel' },
      { kind: 'rollback' },
    ]);
    this.#time.after(this.#random.between(500, 90_000), () =>
      this.#functions.command({ tenant, runId }, back, () => {}),
    );
  }

  /** Something happened to a run, and somebody has seen it. */
  reactTo({ tenant, runId, status }: Run): void {
    this.#reactions += 1;
    if (this.#reactions > REACTIONS_MAX) return;
    const obvious: Command = status === 'failed_retryable' ? { kind: 'retry' } : this.#random.pick(COMMANDS);
    const afterMs = this.#random.between(0, this.#random.pick([300, 8_000, 60_000]));
    this.#time.after(afterMs, () => this.#functions.command({ tenant, runId }, obvious, () => {}));
  }

  /** Sends the command to every running run, and repeats it until it succeeds. */
  insist(command: Command, times = 1): void {
    for (const { tenant, runId } of this.#runs().filter((run) => !isTerminal(run))) {
      this.#functions.command({ tenant, runId }, command, (ending) => {
        if (ending === 'returned' || times > INSISTS_TIMES) return;
        this.#time.after(INSISTS_AFTER_MS, () => this.insist(command, times + 1));
      });
    }
  }

  /** When all is quiet, what is paused goes on, or back, or is canceled. False if nothing is. */
  takeCareOfPaused(cancelAll: boolean): boolean {
    const paused = this.#runs().filter(({ status }) => status === 'paused');
    for (const { tenant, runId } of paused) {
      const command: Command = { kind: cancelAll ? 'cancel' : this.#random.pick(WAYS_ON) };
      this.#functions.command({ tenant, runId }, command, () => {});
    }
    return paused.length > 0;
  }

  #runs(): Run[] {
    return [...this.#store.inside.runs()];
  }
}

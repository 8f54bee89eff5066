import { isTerminal, type Run } from '../../../lambdas/run/run.ts';
import { hasOpenSession } from '../../../lambdas/run/session.ts';
import type { Command } from '../../../lambdas/run-changes/control/control-run.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { Functions } from '../environment/functions.ts';
import type { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';

const COMMANDS: readonly Command[] = [
  { kind: 'cancel', reason: 'not needed' },
  { kind: 'pause' },
  { kind: 'resume' },
  { kind: 'retry' },
  { kind: 'rollback', reason: 'was wrong' },
  { kind: 'signal', event: 'go', payload: { approvedBy: 'somebody' } },
];
const COMMANDS_FOR_PAUSED_RUNS = ['resume', 'resume', 'retry', 'rollback', 'cancel'] as const;
const REPEATS_AFTER_MS = 20_000;
const REPEATS_TIMES_MAX = 30;
/** A reaction changes a run, which may cause another reaction: without a limit, a simulation would not end. */
const REACTIONS_MAX = 40;

/** Operators who send random commands at any time to runs in any state, sometimes twice. */
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

  sendRandomCommand(): void {
    const runs = this.#runs();
    if (runs.length === 0) return;
    const { tenant, runId } = this.#random.pick(runs);
    const command = this.#fitting(tenant, runId, this.#random.pick(COMMANDS));
    const times = this.#random.chance(0.2) ? 2 : 1;
    for (let time = 0; time < times; time += 1) this.#functions.command({ tenant, runId }, command, () => {});
    // Operators usually resume what they have paused.
    if (command.kind !== 'pause' || this.#random.chance(0.3)) return;
    const next = this.#random.pick<Command>([
      { kind: 'resume' },
      { kind: 'retry' },
      { kind: 'cancel' },
      { kind: 'rollback' },
    ]);
    this.#time.after(this.#random.between(500, 90_000), () =>
      this.#functions.command({ tenant, runId }, next, () => {}),
    );
  }

  /** No run with a session waits for a signal: its operator cancels one of its sessions instead. */
  #fitting(tenant: string, runId: string, command: Command): Command {
    if (command.kind !== 'signal') return command;
    const open = this.#store.inside.steps(tenant, runId).find(hasOpenSession);
    return open ? { kind: 'cancel_session', step: open.id, reason: 'works too long' } : command;
  }

  /** A run has changed, and an operator sends a command. */
  reactTo({ tenant, runId, status }: Run): void {
    this.#reactions += 1;
    if (this.#reactions > REACTIONS_MAX) return;
    const command: Command = status === 'failed_retryable' ? { kind: 'retry' } : this.#random.pick(COMMANDS);
    const afterMs = this.#random.between(0, this.#random.pick([300, 8_000, 60_000]));
    this.#time.after(afterMs, () =>
      this.#functions.command({ tenant, runId }, this.#fitting(tenant, runId, command), () => {}),
    );
  }

  /** Sends the command to every open run, and repeats it until it succeeds. */
  sendUntilAccepted(command: Command): void {
    for (const run of this.#runs()) this.#sendTo(run, command);
  }

  #sendTo({ tenant, runId }: Run, command: Command, times = 1): void {
    const run = this.#store.inside.run(tenant, runId);
    if (!run || isTerminal(run)) return;
    this.#functions.command({ tenant, runId }, command, (ending) => {
      if (ending === 'returned' || times > REPEATS_TIMES_MAX) return;
      this.#time.after(REPEATS_AFTER_MS, () => this.#sendTo(run, command, times + 1));
    });
  }

  /** Called when no work is left: resumes, retries, rolls back or cancels paused runs. False if no run is paused. */
  endPausedRuns(cancelAll: boolean): boolean {
    const paused = this.#runs().filter(({ status }) => status === 'paused');
    for (const { tenant, runId } of paused) {
      const command: Command = { kind: cancelAll ? 'cancel' : this.#random.pick(COMMANDS_FOR_PAUSED_RUNS) };
      this.#functions.command({ tenant, runId }, command, () => {});
    }
    return paused.length > 0;
  }

  #runs(): Run[] {
    return [...this.#store.inside.runs()];
  }
}

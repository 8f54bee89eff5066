import { isTerminal, type Run } from '../../../lambdas/run/run.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { Functions } from '../environment/functions.ts';
import { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';

/** What people do with a run that has ended. */
const ENDED_RUN_ACTIONS = ['assign', 'release', 'resolve', 'rollback'] as const;
export type EndedRunAction = (typeof ENDED_RUN_ACTIONS)[number];

/** Longer than a request of a killed worker can take: a person who checks the target sees its final state. */
const CHECKS_AFTER_MS = [120_000, 300_000] as const;
const AGAIN_AFTER_MS = 20_000;
const TRIES_MAX = 6;

/**
 * People who resolve and roll back ended runs. They resolve an unknown outcome by what they find at the target. They have
 * their own random numbers, so that simulations without them do not change.
 */
export class EndedRunOperators {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  readonly #store: MemoryRunStore;
  readonly #known = new Set<string>();

  constructor(time: VirtualTime, seed: number, functions: Functions, store: MemoryRunStore) {
    this.#time = time;
    this.#random = new SeededRandom(seed * 17 + 11);
    this.#functions = functions;
    this.#store = store;
  }

  /** A run has ended. Several people act at about the same time, some of them twice. */
  ended(run: Run): void {
    const { tenant, runId, status, rollbackOf } = run;
    if (!isTerminal(run) || this.#known.has(`${tenant} ${runId}`)) return;
    this.#known.add(`${tenant} ${runId}`);
    const acts: EndedRunAction[] = [];
    if (status !== 'succeeded') acts.push('resolve');
    if (!rollbackOf && this.#random.chance(0.6)) acts.push('rollback', 'rollback');
    if (this.#random.chance(0.3)) acts.push(this.#random.pick(ENDED_RUN_ACTIONS), this.#random.pick(ENDED_RUN_ACTIONS));
    const startMs = this.#random.between(...CHECKS_AFTER_MS);
    for (const act of acts) {
      this.#time.after(startMs + this.#random.between(0, 300), () => this.#act({ tenant, runId }, act));
    }
  }

  /**
   * Repeats a command that was refused, or that failed because of a fault. The refusal to roll back a run without writes is
   * final: a schedule that catches up after an outage leaves a hundred of these runs.
   */
  #act(target: { tenant: string; runId: string }, act: EndedRunAction, tries = 1): void {
    this.#functions.changeEndedRun(target, act, (ending) => {
      const run = this.#store.inside.run(target.tenant, target.runId);
      const isDone = act === 'rollback' ? run?.rolledBackBy !== undefined : run?.resolution !== undefined;
      const repeats = act === 'resolve' || (act === 'rollback' && run?.writes !== 0);
      if (ending === 'returned' || isDone || !repeats || tries >= TRIES_MAX) return;
      this.#time.after(AGAIN_AFTER_MS, () => this.#act(target, act, tries + 1));
    });
  }
}

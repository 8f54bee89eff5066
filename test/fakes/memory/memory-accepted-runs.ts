import type { AcceptedRun } from '../../../lambdas/evidence/accepted-runs/accepted-list.ts';
import type { AcceptedRows, AcceptedState } from '../../../lambdas/evidence/accepted-runs/write-accepted-list.ts';
import type { PreviousDay } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { type Passage, undisturbed } from '../passage.ts';
import { MemoryRows, transact, write } from './memory-rows.ts';
import type { MemoryRunStore } from './memory-run-store.ts';

/** The rows of accepted runs without DynamoDB, from the rows of a memory store. */
export class MemoryAcceptedRuns implements AcceptedRows {
  readonly #store: MemoryRunStore;
  readonly #states = new MemoryRows<AcceptedState>();
  readonly #passage: Passage;
  readonly #lastClosed: (tenant: string) => Promise<PreviousDay | undefined>;
  /** Runs that the index does not show yet. */
  readonly notShown = new Set<string>();
  /** Runs whose row somebody deleted. */
  readonly deleted = new Set<string>();

  constructor(
    store: MemoryRunStore,
    {
      passage = undisturbed,
      lastClosed = async () => undefined,
    }: { passage?: Passage; lastClosed?: (tenant: string) => Promise<PreviousDay | undefined> } = {},
  ) {
    this.#store = store;
    this.#passage = passage;
    this.#lastClosed = lastClosed;
  }

  async *accepted(tenant: string, from: string, until: string): AsyncGenerator<AcceptedRun> {
    const runs = await this.#passage('accepted', async () => [...this.#store.inside.runs()]);
    for (const { tenant: ofTenant, runId, createdAt } of runs) {
      const isShown = ofTenant === tenant && !this.notShown.has(runId) && !this.deleted.has(runId);
      if (isShown && createdAt >= from && createdAt < until) yield { runId, acceptedAt: createdAt };
    }
  }

  sealed(tenant: string, runIds: readonly string[]): Promise<Set<string>> {
    return this.#passage(
      'sealed',
      async () => new Set(runIds.filter((runId) => this.#store.inside.evidence(tenant, runId))),
    );
  }

  runs(tenant: string, runIds: readonly string[]): Promise<Run[]> {
    return this.#passage('runs', async () =>
      runIds.flatMap((runId) => (this.deleted.has(runId) ? [] : (this.#store.inside.run(tenant, runId) ?? []))),
    );
  }

  commitHashes(tenant: string, commits: readonly { runId: string; count: number }[]): Promise<Map<string, string>> {
    return this.#passage(
      'commitHashes',
      async () =>
        new Map(
          commits.flatMap(({ runId, count }) => {
            const commit = this.#store.inside.commit(tenant, runId, count);
            return commit ? [[runId, commit.hash] as const] : [];
          }),
        ),
    );
  }

  state(tenant: string): Promise<AcceptedState | undefined> {
    return this.#passage('state', async () => this.#states.get(tenant));
  }

  saveState(tenant: string, read: AcceptedState | undefined, state: AcceptedState): Promise<boolean> {
    // The same state again is no conflict.
    const isStill = (now?: AcceptedState) => [read, state].some((each) => JSON.stringify(now) === JSON.stringify(each));
    return this.#passage('saveState', async () => !transact([write(this.#states, [tenant], state, isStill)]));
  }

  lastClosed(tenant: string): Promise<PreviousDay | undefined> {
    return this.#lastClosed(tenant);
  }
}

import { BURST_WINDOW_MS } from '../../../lambdas/run/idempotency.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { Ingest } from '../../../lambdas/run/run-store.ts';
import type { MemoryRunStore } from '../../fakes/memory-run-store.ts';
import type { Report } from './report.ts';

/** A delivery starts its runs once, however often and from wherever it comes. */
export class DeliveriesJudge {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #runsOf = new Map<string, string>();
  readonly #bursts = new Map<string, string>();

  constructor(report: Report, store: MemoryRunStore) {
    this.#report = report;
    this.#store = store;
  }

  created({ records, at }: Ingest, runs: readonly Run[]): void {
    const [delivery, burst] = records;
    if (!delivery) return;
    const id = `${delivery.tenant} ${delivery.key}`;
    const runIds = runs.map(({ runId }) => runId).join(' ');
    if (this.#runsOf.has(id))
      this.#report('a delivery starts its runs once', `${id}: ${this.#runsOf.get(id)}, ${runIds}`);
    this.#runsOf.set(id, runIds);
    if (delivery.runIds.join(' ') !== runIds) this.#report('all runs of a delivery or none', id);
    if (!burst) return;
    const burstId = `${burst.tenant} ${burst.key}`;
    const before = this.#bursts.get(burstId);
    if (before !== undefined && Date.parse(at) < Date.parse(before) + BURST_WINDOW_MS) {
      this.#report('a burst starts its runs once', burstId);
    }
    this.#bursts.set(burstId, at);
  }

  /** Intake answered that this delivery is taken in: then its runs are there. */
  accepted(tenant: string, key: string, runIds: readonly string[]): void {
    for (const runId of runIds) {
      if (!this.#store.inside.run(tenant, runId)) this.#report('an accepted delivery has its runs', `${key}: ${runId}`);
    }
    const own = this.#runsOf.get(`${tenant} ${key}`);
    if (own !== undefined && own !== runIds.join(' ')) this.#report('a duplicate is answered with the first runs', key);
  }
}

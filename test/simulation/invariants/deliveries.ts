import type { Delivery } from '../../../lambdas/intake/delivery.ts';
import { BURST_WINDOW_MS } from '../../../lambdas/run/idempotency.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { Ingest } from '../../../lambdas/run/run-store.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { Report } from './report.ts';

/** A delivery starts its runs once, even if it is repeated, through several hooks and under several ids. */
export class DeliveryInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #runsOf = new Map<string, string>();
  readonly #startedAt = new Map<string, string>();
  readonly #eventOf = new Map<string, string>();

  constructor(report: Report, store: MemoryRunStore) {
    this.#report = report;
    this.#store = store;
  }

  created({ records, trigger, at }: Ingest, runs: readonly Run[]): void {
    const [record] = records;
    if (!record) return;
    for (const { tenant, runId, automation, trigger: by } of runs) {
      this.#eventOf.set(runId, eventOf(trigger.payload));
      this.#once('an event starts an automation once', `${tenant} ${by.key} ${automation}`, runId);
      if (trigger.source !== 'github') continue;
      this.#once('a signed body starts its runs once', `${tenant} ${record.requestHash} ${automation}`, runId);
      this.#onceInBurst(`${tenant} ${eventOf(trigger.payload)} ${automation}`, at);
    }
    const first = runs[0];
    if (trigger.source === 'github' || !first) return;
    const runIds = runs.map(({ runId }) => runId).join(' ');
    this.#once('a delivery starts its runs once', `${first.tenant} ${first.trigger.key}`, runIds);
    if (record.runIds.join(' ') !== runIds) this.#report('a delivery starts all of its runs or none', record.key);
  }

  #once(invariant: string, id: string, runIds: string): void {
    const before = this.#runsOf.get(id);
    if (before !== undefined) this.#report(invariant, `${id}: ${before}, ${runIds}`);
    this.#runsOf.set(id, runIds);
  }

  #onceInBurst(id: string, at: string): void {
    const before = this.#startedAt.get(id);
    if (before !== undefined && Math.abs(Date.parse(at) - Date.parse(before)) < BURST_WINDOW_MS) {
      this.#report('a burst starts its runs once', id);
    }
    this.#startedAt.set(id, at);
  }

  /** Intake has accepted this delivery: its runs exist, and they are about its event. */
  accepted(tenant: string, { source, key, payload }: Delivery, runIds: readonly string[]): void {
    if (runIds.length === 0) this.#report('the runs of an accepted delivery exist', key);
    for (const runId of runIds) {
      if (!this.#store.inside.run(tenant, runId))
        this.#report('the runs of an accepted delivery exist', `${key}: ${runId}`);
      const about = this.#eventOf.get(runId);
      if (source === 'github' && about !== eventOf(payload)) {
        this.#report('the response to a delivery names runs of its event', `${key}: ${about}, ${eventOf(payload)}`);
      }
    }
    const own = source === 'github' ? undefined : this.#runsOf.get(`${tenant} ${key}`);
    if (own !== undefined && own !== runIds.join(' '))
      this.#report('the response to a duplicate names the first runs', key);
  }
}

/** How the sender identifies the event. */
const eventOf = (payload: unknown): string => String((payload as { after?: unknown }).after);

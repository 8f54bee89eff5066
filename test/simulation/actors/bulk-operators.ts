import type { BulkAction } from '../../../lambdas/api/contract/runs/bulk.ts';
import type { MemoryBulkJobs } from '../../fakes/memory/memory-bulk-jobs.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { Functions } from '../environment/functions.ts';
import { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';
import type { Observer } from '../observer.ts';

/** A bulk action that somebody takes. */
export interface BulkScript {
  afterMs: number;
  action: BulkAction;
  /** Its preview matches no run, and then somebody adds all runs to the stored job. */
  isTamperedWith?: true;
  /** The outcome that a resolution names; `failed` by default. */
  resolvesAs?: 'succeeded';
}

const FAR_FUTURE = '2099-01-01T00:00:00.000Z';
const OPTIONS: Record<BulkAction, object> = {
  cancel: { reason: 'not needed' },
  retry: {},
  rerun: {},
  resolve: { outcome: 'failed', reason: 'not needed', writes: {} },
};
const AGAIN_AFTER_MS = 5_000;
const PREVIEWS_MAX = 6;
/** One request for each run, and many that fail. */
const REQUESTS_MAX = 60;

/**
 * People who act on many runs. Each sends the token from two terminals, stops in between, and continues after a failure. They
 * have their own random numbers, so that simulations without them do not change.
 */
export class BulkOperators {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  readonly #observer: Observer;
  readonly #store: MemoryRunStore;
  readonly #jobs: MemoryBulkJobs;
  #people = 0;

  constructor(
    seed: number,
    around: {
      time: VirtualTime;
      functions: Functions;
      observer: Observer;
      store: MemoryRunStore;
      jobs: MemoryBulkJobs;
    },
  ) {
    this.#time = around.time;
    this.#random = new SeededRandom(seed * 23 + 7);
    this.#functions = around.functions;
    this.#observer = around.observer;
    this.#store = around.store;
    this.#jobs = around.jobs;
  }

  /** Each job has its own person: the events of a run then show which job changed it. */
  preview(tenant: string, script: BulkScript): void {
    this.#people += 1;
    this.#preview(tenant, `bulk${this.#people}`, script);
  }

  #preview(tenant: string, person: string, script: BulkScript, tries = 1): void {
    const { action, isTamperedWith, resolvesAs } = script;
    const filter = isTamperedWith ? { text: 'no run has this title' } : { until: FAR_FUTURE };
    let job: { jobId: string; token: string } | undefined;
    const responded = (response: { jobId: string; token: string }) => {
      job = response;
    };
    const options = { ...OPTIONS[action], ...(resolvesAs && { outcome: resolvesAs }) };
    this.#functions.bulk(tenant, person, { action, filter, options }, responded, () => {
      if (job) this.#execute(tenant, person, job, isTamperedWith);
      else if (tries < PREVIEWS_MAX)
        this.#time.after(AGAIN_AFTER_MS, () => this.#preview(tenant, person, script, tries + 1));
    });
  }

  #execute(tenant: string, person: string, { jobId, token }: { jobId: string; token: string }, isTamperedWith?: true) {
    this.#observer.bulk.confirmed(person, jobId, isTamperedWith === true);
    const all = [...this.#store.inside.runs()].filter((run) => run.tenant === tenant);
    if (isTamperedWith) this.#jobs.tamperWith(tenant, jobId, all);
    for (const laterMs of [0, this.#random.between(0, 300)]) {
      this.#time.after(laterMs, () => this.#continue(tenant, person, token, isTamperedWith ? 2 : REQUESTS_MAX));
    }
  }

  #continue(tenant: string, person: string, token: string, requestsLeft: number): void {
    let isFinished = false;
    const responded = (response: { finished: boolean }) => {
      isFinished = response.finished;
    };
    this.#functions.bulk(tenant, person, { token }, responded, (ending) => {
      if (isFinished || requestsLeft === 1) return;
      const afterMs = ending === 'returned' ? this.#random.pick([0, 200, 30_000]) : AGAIN_AFTER_MS;
      this.#time.after(afterMs, () => this.#continue(tenant, person, token, requestsLeft - 1));
    });
  }
}

import type { BulkJob, BulkJobs, BulkResult } from '../../../lambdas/api/bulk/bulk-job.ts';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import { copy } from './memory-rows.ts';

export class MemoryBulkJobs implements BulkJobs {
  readonly #jobs = new Map<string, BulkJob>();
  /** How many of the next updates are lost, as if the function had crashed before them. */
  lost = 0;

  /** Somebody with access to the table changes the runs of a job. */
  tamperWith(tenant: string, jobId: string, runs: BulkJob['runs']): void {
    const job = this.#jobs.get(`${tenant}/${jobId}`);
    if (job) this.#jobs.set(`${tenant}/${jobId}`, { ...job, runs: runs.map(({ runId, seq }) => ({ runId, seq })) });
  }

  async get(tenant: string, jobId: string): Promise<BulkJob | undefined> {
    return copy(this.#jobs.get(`${tenant}/${jobId}`));
  }

  async create(job: BulkJob): Promise<void> {
    const key = `${job.tenant}/${job.jobId}`;
    const stored = this.#jobs.get(key);
    if (stored && hashOf(stored) !== hashOf(job)) throw new Error(`the id of job ${job.jobId} is taken`);
    this.#jobs.set(key, copy(job));
  }

  async update(read: BulkJob, results: BulkResult[]): Promise<boolean> {
    const key = `${read.tenant}/${read.jobId}`;
    if (this.lost > 0) {
      this.lost -= 1;
      throw new Error('the function crashed');
    }
    if (this.#jobs.get(key)?.revision !== read.revision) return false;
    this.#jobs.set(key, copy({ ...read, results, revision: read.revision + 1 }));
    return true;
  }
}

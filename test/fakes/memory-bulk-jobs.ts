import type { BulkJob, BulkJobs, BulkResult } from '../../lambdas/api/bulk/bulk-job.ts';
import { copy } from './memory-rows.ts';

export class MemoryBulkJobs implements BulkJobs {
  readonly #jobs = new Map<string, BulkJob>();
  /** How many of the next updates are lost, as if the function had crashed before them. */
  lost = 0;

  async get(tenant: string, jobId: string): Promise<BulkJob | undefined> {
    return copy(this.#jobs.get(`${tenant}/${jobId}`));
  }

  async create(job: BulkJob): Promise<void> {
    const key = `${job.tenant}/${job.jobId}`;
    if (this.#jobs.has(key)) throw new Error(`the id of job ${job.jobId} is taken`);
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

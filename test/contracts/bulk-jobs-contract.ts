import { expect, it } from 'vitest';
import type { BulkJob, BulkJobs, BulkResult } from '../../lambdas/api/bulk/bulk-job.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';

export function bulkJobsContract(open: () => BulkJobs): void {
  const jobOf = (jobId: string, tenant = 'acme'): BulkJob => ({
    tenant,
    jobId,
    action: 'cancel',
    options: { reason: 'wrong rule' },
    person: 'oscar',
    createdAt: STORY_BEGINS_AT,
    runs: [
      { runId: 'run_1', seq: 3 },
      { runId: 'run_2', seq: 4 },
    ],
    results: [],
    revision: 0,
  });
  const done: BulkResult = { runId: 'run_1', outcome: 'done' };
  const refused: BulkResult = { runId: 'run_2', outcome: 'refused', reason: 'it has ended' };

  it('returns a job as it was created, to its tenant only', async () => {
    const jobs = open();
    await jobs.create(jobOf('bulk_a1'));
    expect(await jobs.get('acme', 'bulk_a1')).toMatchObject(jobOf('bulk_a1'));
    expect(await jobs.get('globex', 'bulk_a1')).toBeUndefined();
    expect(await jobs.get('acme', 'bulk_a2')).toBeUndefined();
  });

  it('refuses a second job with the same id', async () => {
    const jobs = open();
    await jobs.create(jobOf('bulk_b1'));
    // The same job again: the reply of the first try was lost.
    await jobs.create(jobOf('bulk_b1'));
    await expect(jobs.create({ ...jobOf('bulk_b1'), person: 'mallory' })).rejects.toThrow('taken');
    expect(await jobs.get('acme', 'bulk_b1')).toMatchObject({ person: 'oscar' });
  });

  it('stores the results of one of two requests that continue the job at the same time', async () => {
    const jobs = open();
    await jobs.create(jobOf('bulk_c1'));
    const read = (await jobs.get('acme', 'bulk_c1')) ?? jobOf('missing');
    expect(await jobs.update(read, [done])).toBe(true);
    expect(await jobs.update(read, [refused])).toBe(false);
    const again = (await jobs.get('acme', 'bulk_c1')) ?? jobOf('missing');
    expect(again).toMatchObject({ results: [done], revision: 1 });
    expect(await jobs.update(again, [done, refused])).toBe(true);
    expect(await jobs.get('acme', 'bulk_c1')).toMatchObject({ results: [done, refused], revision: 2 });
  });
}

import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { hashOf } from '../../run/canonical-json.ts';
import { ROW_IS_NEW, revisionIs } from '../../run/dynamo/dynamo-conditions.ts';
import { toItem } from '../../run/dynamo/dynamo-items.ts';
import { bulkJobKey, TTL_ATTRIBUTE } from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../run/dynamo/dynamo-rows.ts';
import { BULK_JOB_STORED_MS, type BulkJob, type BulkJobs, type BulkResult } from './bulk-job.ts';

export class DynamoBulkJobs implements BulkJobs {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string) {
    this.#rows = new DynamoRows(client, table);
  }

  get(tenant: string, jobId: string): Promise<BulkJob | undefined> {
    return this.#rows.get(bulkJobKey(tenant, jobId));
  }

  async create(job: BulkJob): Promise<void> {
    if (await this.#rows.save(itemOf(job), ROW_IS_NEW)) return;
    // An earlier try may have stored it, and its reply was lost.
    const stored = await this.get(job.tenant, job.jobId);
    if (hashOf(stored) !== hashOf(job)) throw new Error(`the id of job ${job.jobId} is taken`);
  }

  update(read: BulkJob, results: BulkResult[]): Promise<boolean> {
    return this.#rows.save(itemOf({ ...read, results, revision: read.revision + 1 }), revisionIs(read.revision));
  }
}

const itemOf = (job: BulkJob) =>
  toItem(bulkJobKey(job.tenant, job.jobId), job, {
    [TTL_ATTRIBUTE]: Math.ceil((Date.parse(job.createdAt) + BULK_JOB_STORED_MS) / 1000),
  });

import type { BulkAction } from '../contract/runs/bulk.ts';

/** The most runs of one job: with their results they fit in one row of DynamoDB. */
export const BULK_RUNS_MAX = 1_000;
/** A job can be resumed for this long. */
export const BULK_JOB_STORED_MS = 7 * 24 * 60 * 60 * 1000;

export interface BulkResult {
  runId: string;
  outcome: 'done' | 'refused' | 'failed';
  reason?: string;
}

/** One action on a fixed set of runs. The results are in the order of the runs; the next run has none yet. */
export interface BulkJob {
  tenant: string;
  jobId: string;
  action: BulkAction;
  options: Record<string, unknown>;
  /** Who saw the preview. Only they can execute it. */
  person: string;
  createdAt: string;
  /** With the last commit that the preview has seen. */
  runs: { runId: string; seq: number }[];
  results: BulkResult[];
  revision: number;
}

export interface BulkJobs {
  get(tenant: string, jobId: string): Promise<BulkJob | undefined>;
  create(job: BulkJob): Promise<void>;
  /** False if another request has changed the job since it was read. */
  update(read: BulkJob, results: BulkResult[]): Promise<boolean>;
}

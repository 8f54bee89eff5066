import type { TriggerSource } from './run.ts';

/** What is remembered of a delivery, so that the same one again gives the same answer. */
export interface IdempotencyRecord {
  tenant: string;
  key: string;
  source: TriggerSource;
  /** Of the body as received: the same key with another body is a conflict, not a duplicate. */
  requestHash: string;
  runIds: string[];
  createdAt: string;
  expiresAt: string;
}

const HOUR_MS = 60 * 60 * 1000;

/**
 * Kept longer than the sender can repeat itself: GitHub redelivers by hand for 3 days, GitHub Enterprise Server for 7;
 * a ServiceNow business rule retries within the day.
 */
export const IDEMPOTENCY_RETENTION_MS: Record<TriggerSource, number> = {
  github: 8 * 24 * HOUR_MS,
  servicenow: 24 * HOUR_MS,
};

/** GitHub may send one change of a pull request as several deliveries in a burst. */
export const BURST_WINDOW_MS = 5_000;

export const githubBurstKey = (repository: string, number: number, event: string) =>
  `github:burst:${repository}#${number}:${event}`;

export const githubKey = (deliveryId: string) => `github:${deliveryId}`;

export const servicenowKey = (record: { instance: string; table: string; sysId: string; modCount: number }) =>
  `servicenow:${record.instance}:${record.table}:${record.sysId}:${record.modCount}`;

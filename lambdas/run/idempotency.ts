import type { TriggerSource } from './run.ts';

/**
 * What is remembered of a delivery, so that the same one again gives the same answer. It is written in the transaction
 * that creates the runs: there is no delivery half processed, hence no lock to expire and no attempt to count.
 */
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

/** How each source names a delivery: the same one again has the same key, another one never has. */
export const deliveryKey = {
  github: ({ deliveryId }: { deliveryId: string }) => `github:${deliveryId}`,
  githubBurst: ({ repository, number, event }: { repository: string; number: number; event: string }) =>
    `github:burst:${repository}#${number}:${event}`,
  servicenow: (record: { instance: string; table: string; sysId: string; modCount: number }) =>
    `servicenow:${record.instance}:${record.table}:${record.sysId}:${record.modCount}`,
  api: ({ clientId, requestId }: { clientId: string; requestId: string }) => `api:${clientId}:${requestId}`,
  slackAction: ({ teamId, triggerId }: { teamId: string; triggerId: string }) => `slack:${teamId}:${triggerId}`,
  slackEvent: ({ teamId, eventId }: { teamId: string; eventId: string }) => `slack:${teamId}:event:${eventId}`,
  /** A slot is a time cut to the grain of the schedule. */
  schedule: ({ scheduleId, slot }: { scheduleId: string; slot: string }) => `scheduler:${scheduleId}:${slot}`,
  manual: ({ automationId, requestId }: { automationId: string; requestId: string }) =>
    `manual:${automationId}:${requestId}`,
};

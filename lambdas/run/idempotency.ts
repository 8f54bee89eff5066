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
  /** Which of the sender's subscriptions delivered it: GitHub sends one event to every hook, under one id. */
  hook?: string;
  runIds: string[];
  /** The automation of each of these runs, in the same order. Records written before 2026-11 have none. */
  automations?: string[];
  createdAt: string;
  expiresAt: string;
}

const HOUR_MS = 60 * 60 * 1000;

/**
 * Remembered longer than the sender can repeat itself: GitHub redelivers by hand for 3 days, Enterprise Server for 7;
 * a ServiceNow business rule retries within the day.
 */
export const IDEMPOTENCY_RETENTION_MS: Record<TriggerSource, number> = {
  github: 8 * 24 * HOUR_MS,
  servicenow: 24 * HOUR_MS,
};

/** The same event of a pull request may arrive under several delivery ids; within this time it is recognised by its content. */
export const BURST_WINDOW_MS = 5_000;

/** How each source names a delivery: the same one again has the same key, another one never has. */
export const deliveryKey = {
  github: ({ deliveryId }: { deliveryId: string }) => `github:${deliveryId}`,
  /** GitHub signs the body and nothing else. Id, event name and hook can be changed by whoever sends a body again. */
  githubBody: ({ bodyHash }: { bodyHash: string }) => `github:body:${bodyHash}`,
  /** Two labels or two comments within seconds have different content, so they have different keys. */
  githubBurst: ({ event, contentHash }: { event: string; contentHash: string }) =>
    `github:burst:${event}:${contentHash}`,
  /** For an event that started some automations before and now matches another one, through another hook. */
  forAutomation: ({ key, automation }: { key: string; automation: string }) => `${key}:automation:${automation}`,
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

import type { TriggerSource } from './run.ts';

/**
 * Stored for each delivery, so that a repeated delivery gets the same response. The transaction that creates the runs
 * writes it, so a delivery is never half processed and needs no lock.
 */
export interface IdempotencyRecord {
  tenant: string;
  key: string;
  source: TriggerSource;
  /** Of the received body. The same key with another body is a conflict, not a duplicate. */
  requestHash: string;
  /** The subscription that delivered it: GitHub sends an event to every hook with the same id. */
  hook?: string;
  runIds: string[];
  /** The automation of each of these runs, in the same order. Records written before 2026-11 have none. */
  automations?: string[];
  createdAt: string;
  expiresAt: string;
}

const HOUR_MS = 60 * 60 * 1000;

/**
 * Longer than the sender can repeat a delivery: GitHub redelivers by hand for 3 days, Enterprise Server for 7;
 * a ServiceNow business rule retries within the day.
 */
export const IDEMPOTENCY_RETENTION_MS: Record<TriggerSource, number> = {
  github: 8 * 24 * HOUR_MS,
  servicenow: 24 * HOUR_MS,
};

/** The same event of a pull request may arrive under several delivery ids; within this time it is recognised by its content. */
export const BURST_WINDOW_MS = 5_000;

/** A repeated delivery has the same key; another delivery has another key. */
export const deliveryKey = {
  github: ({ deliveryId }: { deliveryId: string }) => `github:${deliveryId}`,
  /** GitHub signs only the body. A person who resends it can change id, event name and hook. */
  githubBody: ({ bodyHash }: { bodyHash: string }) => `github:body:${bodyHash}`,
  /** Two labels or two comments within seconds have different content, so they have different keys. */
  githubBurst: ({ event, contentHash }: { event: string; contentHash: string }) =>
    `github:burst:${event}:${contentHash}`,
  /** For an event that started some automations before and now matches another one, through another hook. */
  forAutomation: ({ key, automation }: { key: string; automation: string }) => `${key}:automation:${automation}`,
  servicenow: (record: { instance: string; table: string; sysId: string; modCount: number }) =>
    `servicenow:${record.instance}:${record.table}:${record.sysId}:${record.modCount}`,
};

import type { RunRequest, TriggerSource } from './run.ts';

/** A run as it was started. Nothing of it changes later. */
export interface StartedRun {
  runId: string;
  automation: string;
  workflow: { name: string; version: number };
  trigger: { source: TriggerSource; event: string; key: string };
  subject?: string;
  request: RunRequest;
  createdAt: string;
}

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
  /** The response to the request that started a run. The same request again gets the same response. */
  response?: StartedRun;
  /** The automation of each of these runs, in the same order. Records written before 2026-11 have none. */
  automations?: string[];
  createdAt: string;
  expiresAt: string;
}

const HOUR_MS = 60 * 60 * 1000;

/**
 * Longer than the sender can repeat a delivery: GitHub redelivers by hand for 3 days, Enterprise Server for 7;
 * a ServiceNow business rule retries within the day; a sender of Standard Webhooks retries for up to 3 days. A slot of a
 * schedule is fired again only within `CATCH_UP_WINDOW_MS`, which is shorter.
 */
export const IDEMPOTENCY_RETENTION_MS: Record<TriggerSource, number> = {
  github: 8 * 24 * HOUR_MS,
  servicenow: 24 * HOUR_MS,
  generic: 4 * 24 * HOUR_MS,
  api: 24 * HOUR_MS,
  manual: 24 * HOUR_MS,
  schedule: 14 * 24 * HOUR_MS,
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
  generic: ({ name, id }: { name: string; id: string }) => `generic:${name}:${id}`,
  /** Of one client: two clients may use the same request id. */
  api: ({ client, requestId }: { client: string; requestId: string }) => `api:${client}:${requestId}`,
  manual: ({ automation, client, requestId }: { automation: string; client: string; requestId: string }) =>
    `manual:${automation}:${client}:${requestId}`,
  schedule: ({ name, slot }: { name: string; slot: string }) => `scheduler:${name}:${slot}`,
  /** Not the id of the event: Slack sends a message that mentions the app as two events. */
  slackMessage: ({ team, channel, ts }: { team: string; channel: string; ts: string }) =>
    `slack:${team}:message:${channel}:${ts}`,
  /** The run of a thread that follows another one of it. */
  slackThread: ({
    team,
    channel,
    threadTs,
    after,
  }: {
    team: string;
    channel: string;
    threadTs: string;
    after: string;
  }) => `slack:${team}:thread:${channel}:${threadTs}:after:${after}`,
  slackCommand: ({ team, triggerId }: { team: string; triggerId: string }) => `slack:${team}:${triggerId}`,
  /** Each saved plan is applied once. The same plan, saved again, can be applied again. */
  plan: ({ planHash, plannedAt }: { planHash: string; plannedAt: string }) => `plan:${planHash}:${plannedAt}`,
};

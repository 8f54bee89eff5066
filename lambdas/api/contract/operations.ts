import * as z from 'zod';
import { RunStatus } from '../../run/run.ts';
import { QUEUES } from '../queue-names.ts';
import { route } from './route.ts';
import { RunCounts } from './runs/runs.ts';
import { Timestamp } from './schemas.ts';

const QueueCount = z.object({
  queue: z.enum(QUEUES),
  messages: z.int().meta({ description: "Messages of the caller's tenant" }),
  complete: z.boolean().meta({
    description: 'False: the queue has more messages than one request reads, or another request reads some; call again',
  }),
});
export type QueueCount = z.infer<typeof QueueCount>;

const DeadLetter = z.object({
  id: z.string(),
  queue: z.enum(QUEUES),
  kind: z.string().nullable().meta({ description: 'What the message asks for; null if it cannot be read' }),
  run: z
    .object({ runId: z.string(), title: z.string().nullable(), status: RunStatus.nullable() })
    .nullable()
    .meta({ description: 'The run as it is now; its status is null if the run is not stored' }),
  sentAt: Timestamp,
  attempts: z.int(),
  reason: z.string(),
});
export type DeadLetter = z.infer<typeof DeadLetter>;

const IDS_MAX = 100;
const Selection = z.strictObject({
  ids: z.array(z.string().max(200)).min(1).max(IDS_MAX).optional(),
  runId: z.string().max(200).optional().meta({ description: 'All messages of this run' }),
  queue: z.enum(QUEUES).optional(),
});
export type DeadLetterSelection = z.infer<typeof Selection>;

export const deadLetterRoutes = {
  listDeadLetters: route({
    method: 'GET',
    path: '/api/v1/dead-letters',
    right: 'dead-letters:read',
    summary: "Lists the tenant's messages in the dead-letter queues, the oldest first",
    query: z.strictObject({ queue: z.enum(QUEUES).optional(), runId: z.string().max(200).optional() }),
    responses: { 200: z.object({ queues: z.array(QueueCount), deadLetters: z.array(DeadLetter) }) },
  }),
  redriveDeadLetters: route({
    method: 'POST',
    path: '/api/v1/dead-letters/redrive',
    right: 'dead-letters:redrive',
    summary: "Sends the tenant's dead letters back to their queues: those selected, or all",
    body: Selection,
    responses: { 202: z.object({ redriven: z.array(QueueCount) }) },
  }),
};

const PROBLEM_KINDS = [
  'sweeper_silent',
  'due_rows',
  'needs_human',
  'approvals_overdue',
  'dead_letters',
  'outbox_stuck',
  'not_sealed',
  'connection_missing',
  'failed',
  'timed_out',
  'paused',
  'waiting_for_slot',
  'retrying',
  'writes_off',
  'agents_off',
] as const;

const StatusProblem = z.object({
  kind: z.enum(PROBLEM_KINDS),
  severity: z.enum(['act', 'watch']).meta({ description: '`act`: somebody must do something' }),
  what: z.string(),
  count: z.int(),
  atLeast: z.literal(true).optional().meta({ description: 'There are more than `count`' }),
  since: Timestamp.nullable(),
  oldestRun: z.object({ runId: z.string(), title: z.string().nullable(), errorCode: z.string().nullable() }).nullable(),
  command: z.string().meta({ description: 'The command to continue with' }),
  runbook: z.string().meta({ description: 'The heading in the RUNBOOK' }),
});
export type StatusProblem = z.infer<typeof StatusProblem>;

const Status = z.object({
  tenant: z.string(),
  at: Timestamp,
  healthy: z.boolean().meta({ description: 'Nobody must do anything' }),
  problems: z.array(StatusProblem),
  counts: RunCounts,
  lastSweepAt: Timestamp.nullable(),
  notChecked: z.array(z.string()).meta({ description: 'What the role of the caller may not read' }),
});

export const statusRoutes = {
  getStatus: route({
    method: 'GET',
    path: '/api/v1/status',
    right: 'runs:read',
    summary: 'Returns what is wrong in the tenant, since when, how many runs are affected and what to do',
    responses: { 200: Status },
  }),
};

const OutboxEntries = z.object({
  entries: z.array(
    z.object({
      id: z.string(),
      kind: z.string().nullable(),
      runId: z.string().nullable(),
      attempts: z.int(),
      createdAt: Timestamp.nullable(),
      failed: z.object({ at: Timestamp, reason: z.string() }).nullable(),
    }),
  ),
  more: z.boolean(),
});

export const outboxRoutes = {
  redriveOutbox: route({
    method: 'POST',
    path: '/api/v1/outbox/redrive',
    right: 'outbox:redrive',
    summary: "Sends the tenant's stuck outbox entries again; `dryRun` only lists them",
    body: z.strictObject({ dryRun: z.boolean().default(false) }),
    responses: { 200: OutboxEntries, 202: OutboxEntries },
  }),
};

export const healthRoutes = {
  getHealth: route({
    method: 'GET',
    path: '/healthz',
    right: 'public',
    summary: 'Responds if requests reach the stage',
    responses: { 200: z.object({ status: z.literal('ok') }) },
  }),
};

import * as z from 'zod';
import { route } from './route.ts';
import { Timestamp } from './schemas.ts';

const QueueCount = z.object({
  queue: z.string(),
  messages: z.int().meta({ description: "Messages of the caller's tenant" }),
  complete: z.boolean().meta({ description: 'False: the queue has more messages than one request reads; call again' }),
});
export type QueueCount = z.infer<typeof QueueCount>;

export const deadLetterRoutes = {
  countDeadLetters: route({
    method: 'GET',
    path: '/api/v1/dead-letters',
    right: 'dead-letters:read',
    summary: "Counts the tenant's messages in each dead-letter queue",
    responses: { 200: z.object({ queues: z.array(QueueCount) }) },
  }),
  redriveDeadLetters: route({
    method: 'POST',
    path: '/api/v1/dead-letters/redrive',
    right: 'dead-letters:redrive',
    summary: "Sends the tenant's dead letters back to their queues",
    responses: { 202: z.object({ redriven: z.array(QueueCount) }) },
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

import * as z from 'zod';
import type { By } from '../../../run/events/run-events.ts';
import type { CommandRecord, Cost, Reversal, TouchedState } from '../../../run/receipt.ts';
import type { SessionFacts } from '../../../run/session.ts';
import type { Awaited, Governed } from '../../../run/step.ts';
import { route } from '../route.ts';
import { json, large, RecordedError, runParams, Timestamp } from '../schemas.ts';

const stepFacts = {
  index: z.int(),
  id: z.string(),
  tool: z.string(),
  leaseVersion: z.int(),
  attempt: z.int(),
  startedAt: Timestamp.optional(),
  updatedAt: Timestamp,
  governed: json<Governed>('The last policy request for this step, and the decision').optional(),
  undoes: z.int().optional().meta({ description: 'Index of the step whose write this step undoes' }),
  retriedBy: z.array(z.string()).optional(),
  earlierCalls: z.int().optional(),
  expects: json<TouchedState>('What the target must hold for the write to be made').optional(),
  sent: z.literal(true).optional().meta({ description: 'A request was sent and refused; sending it again is a retry' }),
  notBefore: Timestamp.optional().meta({ description: 'The target asked not to be called before this time' }),
  assigned: z
    .object({
      ...{ agentId: z.string(), agentName: z.string(), assignmentId: z.string(), bootId: z.string() },
      ...{ profile: z.string(), statementHash: z.string(), at: Timestamp },
    })
    .optional()
    .meta({ description: 'The agent that runs its command, or has run it' }),
  unassigned: z
    .object({ count: z.int(), agents: z.array(z.string()) })
    .optional()
    .meta({ description: 'Assignments that no agent acknowledged' }),
  session: json<SessionFacts>('The session that the step started, and the ids of its actions').optional(),
};
const input = json('The input of the tool');
const prepared = { input, receiptKey: z.string() };
const preparedOrNot = { input: input.optional(), receiptKey: z.string().optional() };
const ended = { completedAt: Timestamp, durationMs: z.number().optional() };
const output = json('The output of the tool');
const by = json<By>('Who or what caused it').optional();
const lease = z.object({ owner: z.string(), expiresAt: Timestamp });
const inStatus = <Status extends string, Fields extends z.ZodRawShape>(status: Status, fields: Fields) =>
  z.object({ ...stepFacts, status: z.literal(status), ...fields });

/** A step of a run. `pending`: the run has not reached it yet. */
export const Step = z.discriminatedUnion('status', [
  z.object({ index: z.int(), id: z.string(), tool: z.string(), status: z.literal('pending') }),
  inStatus('running', { ...prepared, lease }),
  inStatus('failed_retryable', {
    ...preparedOrNot,
    retryAt: Timestamp,
    error: RecordedError,
    flag: z.string().optional().meta({ description: 'The step waits until this flag is on' }),
    stopped: z.literal(true).optional().meta({ description: 'The run was stopped while the step was performed' }),
  }),
  inStatus('waiting_approval', { approvalId: z.string(), expiresAt: Timestamp, input: input.optional() }),
  inStatus('ready', { input, by }),
  inStatus('waiting_external', {
    awaits: json<Awaited>('A time, a signal until a time, or the completion of its session'),
  }),
  inStatus('succeeded', {
    ...ended,
    output,
    receiptKey: z.string().optional(),
    skipped: z.literal(true).optional(),
    madeByStep: z.int().optional().meta({ description: 'Index of the earlier step that made the identical write' }),
    copiedFrom: z.string().optional().meta({ description: 'The run that a replay took this output from' }),
  }),
  inStatus('rolled_back', { ...ended, output, receiptKey: z.string() }),
  inStatus('failed_terminal', {
    ...ended,
    ...preparedOrNot,
    error: RecordedError,
    by,
    wrote: z.literal(true).optional(),
    mayHaveWritten: z
      .literal(true)
      .optional()
      .meta({ description: 'A command that may have changed something before it failed; a rollback undoes it' }),
  }),
  inStatus('canceled', { ...ended, ...preparedOrNot }),
]);
Step.register(z.globalRegistry, { id: 'Step' });
export type Step = z.infer<typeof Step>;

const before = json<TouchedState>('The values before the write').optional();
const cost = json<Cost>('What the provider charged').optional();
const reversal = json<Reversal>('How to undo the write, or why it cannot be undone');
const receiptFacts = {
  key: z.string().meta({ description: 'The idempotency key of the write' }),
  runId: z.string(),
  stepId: z.string(),
  stepIndex: z.int(),
  tool: z.string(),
  effect: z.enum(['read', 'natural', 'probe', 'opaque']),
  target: large(z.string()),
  fields: large(z.array(z.string())),
  requestHash: z.string(),
  attempt: z.int(),
  leaseVersion: z.int(),
  intentAt: Timestamp,
  openSince: Timestamp,
  spentBefore: cost,
  command: json<CommandRecord>('What the agent reported about its command').optional(),
  grounds: large(
    z.object({ policyHash: z.string(), policies: z.array(z.string()), approvalId: z.string().optional() }),
  ).optional(),
};
const written = {
  settledAt: Timestamp,
  reusedBy: z.string().optional().meta({ description: 'Another run that reuses this write' }),
  output,
  before,
  reversal,
  cost,
  response: json<Record<string, string | number | boolean>>('What the target returned: status, id, time'),
  incomplete: large(z.string()).optional(),
  recovered: z.literal(true).optional(),
};

/** The record of one write at a target. */
export const Receipt = z.discriminatedUnion('outcome', [
  z.object({ ...receiptFacts, outcome: z.literal('intent'), before }),
  z.object({ ...receiptFacts, outcome: z.literal('succeeded'), ...written, undoBegunAt: Timestamp.optional() }),
  z.object({
    ...receiptFacts,
    outcome: z.literal('reversed'),
    ...written,
    reversedAt: Timestamp,
    reversedBy: z.string(),
    error: RecordedError.optional(),
  }),
  z.object({
    ...receiptFacts,
    outcome: z.literal('failed'),
    settledAt: Timestamp,
    error: RecordedError,
    cost,
    neverSent: z.literal(true).optional(),
    reversal: reversal.optional(),
  }),
  z.object({
    ...receiptFacts,
    outcome: z.literal('unknown'),
    settledAt: Timestamp,
    error: RecordedError,
    before,
    reversal: reversal.optional(),
  }),
]);
Receipt.register(z.globalRegistry, { id: 'Receipt' });
export type Receipt = z.infer<typeof Receipt>;

const OutputPart = z.object({
  step: z.string(),
  index: z.int(),
  leaseVersion: z.int().meta({ description: 'The attempt that the output is of' }),
  chunks: z.array(
    z.object({
      seq: z.int(),
      stream: z.enum(['stdout', 'stderr', 'status']),
      at: Timestamp.meta({ description: 'When the agent read it' }),
      data: z.string().meta({ description: 'Without secrets: the agent and the runtime remove them' }),
    }),
  ),
  next: z.int().meta({ description: '`since` of the next request' }),
  more: z.boolean().meta({ description: 'There is more to read now' }),
  complete: z.boolean().meta({ description: 'The command has ended, and this is the end of its output' }),
  total: z
    .object({
      bytes: z.int(),
      droppedBytes: z.int().meta({ description: 'What the command printed after the limit of 10 MB' }),
      complete: z.boolean().meta({ description: 'False if a part did not arrive, because the agent was lost' }),
      sha256: z.string().optional(),
    })
    .optional()
    .meta({ description: 'Of the whole output, once the command has ended' }),
});

export const outputRoutes = {
  getStepOutput: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/steps/{index}/output',
    right: 'runs:read',
    summary: 'Returns output of the command of a step, from a chunk on. Poll it while `complete` is false',
    params: runParams.extend({ index: z.string().meta({ description: 'Number of the step, from 0, or its ID' }) }),
    query: z.strictObject({
      since: z.coerce.number().int().min(0).default(0).meta({ description: 'Number of the first chunk' }),
      lease: z.coerce.number().int().min(1).optional().meta({ description: 'An earlier attempt. Default: the last' }),
    }),
    responses: { 200: OutputPart },
  }),
};

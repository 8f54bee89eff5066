import * as z from 'zod';
import { SESSION_OUTCOMES } from '../../../run/session.ts';
import { route } from '../route.ts';
import { JsonValue, json, PageQuery, page, RecordedError, runParams, Timestamp } from '../schemas.ts';

const TITLE_MAX_CHARACTERS = 300;
const TOOL_MAX_CHARACTERS = 100;
const SUMMARY_MAX_CHARACTERS = 4_000;
const COMPLETION_MAX_BYTES = 128 * 1024;

const ACTION_STATUSES = [
  'pending',
  'waiting_approval',
  'succeeded',
  'denied',
  'failed',
  'needs_human',
  'canceled',
] as const;

/** One call that a session, a person or a program proposed, and its outcome. */
export const Action = z.object({
  actionId: z.string().meta({ description: 'Also the ID of the run that makes the call' }),
  status: z.enum(ACTION_STATUSES).meta({ description: '`pending`: not yet decided, or being made; ask again' }),
  tool: z.string(),
  target: z.string().nullable().meta({ description: 'Known when the call was proposed to policy' }),
  session: z
    .object({ runId: z.string(), step: z.string() })
    .nullable()
    .meta({ description: 'The session that proposed it; null if a person or program did' }),
  requestedBy: z.string(),
  createdAt: Timestamp,
  completedAt: Timestamp.nullable(),
  result: json('The output of the tool').nullable(),
  reasons: z
    .array(z.string())
    .meta({ description: 'What policy says about the call: why it is denied, or asks people' }),
  approval: z
    .object({
      approvalId: z.string(),
      expiresAt: Timestamp,
      path: z.string().meta({ description: 'The page of the console where people decide' }),
    })
    .nullable()
    .meta({ description: 'While people must decide' }),
  error: RecordedError.nullable(),
});
Action.register(z.globalRegistry, { id: 'Action' });
export type Action = z.infer<typeof Action>;

const ActionBody = z.strictObject({
  tool: z.string().min(1).max(TOOL_MAX_CHARACTERS).meta({ example: 'github.labels.add' }),
  input: z.record(z.string(), JsonValue).meta({
    description: 'The input of the tool. Nothing in it is an expression',
    example: { owner: 'octo-org', repo: 'payments', number: 7, labels: ['bug'] },
  }),
});

const actionParams = z.object({ id: z.string(), actionId: z.string() });
const proposed = { 200: Action, 201: Action };

/** Read with the rights of a person or a program. */
export const actionRoutes = {
  listRunActions: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/actions',
    right: 'runs:read',
    summary: 'Lists the actions that the sessions of a run proposed, in their order',
    params: runParams,
    query: PageQuery,
    responses: { 200: page('actions', Action) },
  }),
  getAction: route({
    method: 'GET',
    path: '/api/v1/actions/{id}',
    right: 'runs:read',
    summary: 'Returns an action: its result, the approval that it waits for, or why it was denied',
    params: z.object({ id: z.string() }),
    responses: { 200: Action },
  }),
};

export const directActionRoutes = {
  proposeAction: route({
    method: 'POST',
    path: '/api/v1/actions',
    right: 'runs:start',
    summary: 'Proposes one call of a tool, outside a workflow. Policy and people decide on it like on any step',
    description:
      'The call is a run of its own, in the name of the automation `countersign.action`. With an Idempotency-Key, the same ' +
      'request again starts nothing.',
    idempotent: true,
    body: ActionBody.extend({
      title: z
        .string()
        .trim()
        .min(1)
        .max(TITLE_MAX_CHARACTERS)
        .optional()
        .meta({ description: 'Why; shown to approvers' }),
    }),
    responses: proposed,
  }),
};

const TOKEN =
  'Send the token of the prompt as `Authorization: Bearer`. It is valid for this run only, until its step ends.';

const CompletionBody = z.strictObject({
  completion_id: z.string().min(1).max(200).meta({ description: 'From the prompt' }),
  outcome: z.enum(SESSION_OUTCOMES),
  summary: z.string().trim().min(1).max(SUMMARY_MAX_CHARACTERS).meta({ description: 'What was done, for people' }),
  output: JsonValue.optional().meta({ description: 'The output of the step, for later steps' }),
});

/** Requests of sessions. A run-scoped token proves who sends them. */
export const sessionRoutes = {
  proposeSessionAction: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/actions',
    right: 'signed',
    summary: 'Proposes one call of a session. Its step says which tools it may use, and with which input',
    description: `${TOKEN} An Idempotency-Key is required: the same request again starts nothing.`,
    params: z.object({ id: z.string() }),
    body: ActionBody,
    responses: proposed,
  }),
  getSessionAction: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/actions/{actionId}',
    right: 'signed',
    summary: 'Returns an action of the session: its result, the approval that it waits for, or why it was denied',
    description: TOKEN,
    params: actionParams,
    responses: { 200: Action },
  }),
  completeSession: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/complete',
    right: 'signed',
    summary: 'Completes a session: its step ends with the outcome',
    description: `${TOKEN} The same completion again changes nothing; another content is refused.`,
    params: z.object({ id: z.string() }),
    body: CompletionBody,
    bodyMaxBytes: COMPLETION_MAX_BYTES,
    responses: { 200: z.object({ outcome: z.enum(SESSION_OUTCOMES), repeated: z.boolean() }) },
  }),
  heartbeatSession: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/heartbeat',
    right: 'signed',
    summary: 'Records that a session is active. Also receives push notifications of A2A',
    description: TOKEN,
    params: z.object({ id: z.string() }),
    // Empty, or a notification in the form that A2A defines.
    body: JsonValue,
    responses: { 200: z.object({ until: Timestamp.meta({ description: 'When the session must have completed' }) }) },
  }),
};

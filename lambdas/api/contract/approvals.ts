import * as z from 'zod';
import type { Names } from '../../connectors/connector.ts';
import type { ProposedAction } from '../../policy/policy.ts';
import { GATE_REASONS } from '../../run/approval.ts';
import type { ApprovalPhase } from '../../run/approval-phase.ts';
import type { TouchedState } from '../../run/receipt.ts';
import { route } from './route.ts';
import { JsonValue, json, large, PageQuery, page, runParams, Timestamp } from './schemas.ts';

const Channel = z.enum(['slack', 'api', 'console']);
const Risk = z.enum(['low', 'medium', 'high']);

export const Approval = z.object({
  approvalId: z.string(),
  runId: z.string(),
  stepIndex: z.int(),
  stepId: z.string(),
  status: z.enum(['requested', 'notified', 'approved', 'rejected', 'expired', 'canceled']),
  requestedAt: Timestamp,
  remindAt: Timestamp,
  slaAt: Timestamp,
  expiresAt: Timestamp,
  automation: z.string(),
  workflow: z.object({ name: z.string(), version: z.int() }),
  title: large(z.string()),
  subject: large(z.string()).optional(),
  asks: z.enum(GATE_REASONS),
  action: json<ProposedAction>('The write, with its values').optional(),
  message: large(z.string()).optional(),
  before: json<TouchedState>('The current values at the target').optional(),
  after: json<TouchedState>('The values after the write').optional(),
  names: json<Names>('Names behind the values, by field and value').optional(),
  makerNames: json<Record<string, string>>('Names for makers that are only known by an id').optional(),
  unread: z.string().optional().meta({ description: 'Why the current values could not be read' }),
  phase: json<ApprovalPhase>('The other writes of the phase that the approval covers').optional(),
  actionHash: z.string().meta({ description: 'Identifies exactly what is approved; send it with the decision' }),
  grounds: large(z.object({ policyHash: z.string(), policies: z.array(z.string()), reasons: z.array(z.string()) })),
  requirement: large(
    z.object({
      tier: Risk,
      quorum: z.int(),
      groups: z.array(z.array(z.string())),
      operators: z.literal(true).optional(),
    }),
  ),
  makers: large(z.array(z.string())),
  votes: large(
    z.array(
      z.object({
        person: z.string(),
        via: Channel,
        decision: z.enum(['approve', 'reject']),
        reason: z.string().optional(),
        onBehalfOf: z.string().optional(),
        at: Timestamp,
      }),
    ),
  ),
  edits: large(
    z.array(
      z.object({
        person: z.string(),
        via: Channel,
        at: Timestamp,
        changes: z.array(z.object({ field: z.string(), from: json('Before'), to: json('After') })),
        previousHash: z.string(),
      }),
    ),
  ),
  channel: z.string(),
  remindedAt: Timestamp.optional(),
  escalatedAt: Timestamp.optional(),
  card: z.object({ channel: z.string(), ts: z.string() }).optional(),
  decidedAt: Timestamp.optional(),
  warning: z
    .string()
    .optional()
    .meta({ description: 'Why too few people can approve it, and what to do; in responses about approvals only' }),
});
Approval.register(z.globalRegistry, { id: 'Approval' });
export type Approval = z.infer<typeof Approval>;

const DecisionResult = z.object({
  outcome: z.enum(['counted', 'approved', 'rejected', 'edited', 'already']),
  missing: z.int().optional().meta({ description: 'How many more people must approve, if the outcome is `counted`' }),
  approval: Approval,
});
DecisionResult.register(z.globalRegistry, { id: 'DecisionResult' });

const ChangedField = z.object({
  name: z.string(),
  from: large(z.string())
    .nullable()
    .optional()
    .meta({ description: 'Absent if the current value is not known; null: not set' }),
  to: large(z.string()).nullable(),
});

/** What the caller needs to decide, in the words of the card in Slack. */
const ForDecision = z.object({
  heading: z.string().meta({ example: 'Approval needed: servicenow.incident.update' }),
  does: z.string().nullable().meta({ description: 'What the tool does', example: 'Sets fields of an incident.' }),
  written: z.array(ChangedField).meta({ description: 'The written fields, with names behind the values' }),
  follows: z.array(ChangedField).meta({ description: 'Other fields of the target that the write changes' }),
  why: large(z.array(z.string())).meta({ description: 'Why an approval is required' }),
  requirement: z.string().meta({ example: 'Needs one person who may approve tier medium.' }),
  approvedSoFar: z.int().meta({ description: 'Votes that count' }),
  withoutDecision: z.string(),
  undo: z.string().nullable().meta({ example: 'It can be undone.' }),
  you: z.object({
    may: z.boolean(),
    why: z.string().optional().meta({ description: 'Why the caller may not decide' }),
    voted: z.enum(['approve', 'reject']).optional(),
    onBehalfOf: z.string().optional(),
  }),
  people: z
    .array(z.object({ person: z.string(), name: z.string(), may: z.boolean(), why: z.string().optional() }))
    .meta({ description: 'Who may decide, and the makers of the write, who may not; at most 50 of each' }),
  editable: z.array(
    z.object({
      field: z.string(),
      type: z.enum(['text', 'number', 'boolean', 'json']),
      value: large(json('The value now')),
      reference: z.boolean().meta({ description: 'Takes an id or a name of a record' }),
      choices: z.array(z.object({ value: z.string(), name: z.string() })),
    }),
  ),
});
ForDecision.register(z.globalRegistry, { id: 'ForDecision' });
export type ForDecision = z.input<typeof ForDecision>;

const REASON_MAX_CHARACTERS = 2000;
const Seen = {
  actionHash: z.string('send the actionHash of the approval you were shown'),
  via: z.enum(['api', 'console']).default('api').meta({ description: 'Where the person decided, for the record' }),
};
const Reason = z.string().trim().min(1, 'give a reason').max(REASON_MAX_CHARACTERS);
const Rejection = z.strictObject({ reason: Reason, ...Seen });
export const DecisionBody = z.discriminatedUnion('decision', [
  z.strictObject({ decision: z.literal('approve'), ...Seen }),
  Rejection.extend({ decision: z.literal('reject') }),
  z.strictObject({ decision: z.literal('edit'), fields: z.record(z.string(), JsonValue), ...Seen }),
]);
export type DecisionBody = z.infer<typeof DecisionBody>;

const EXAMPLE_HASH = '9f2c1e7ad0b34c55a8e1f6d20b7c4e93d1a5f08b6c2e7d419a3f5b8c0e6d7a12';

const approvalParams = z.object({ id: z.string().meta({ description: 'ID of the approval' }) });

export const approvalRoutes = {
  listApprovals: route({
    method: 'GET',
    path: '/api/v1/approvals',
    right: 'approvals:read',
    summary: 'Lists pending approvals, the oldest first, or closed ones, the last closed first',
    query: PageQuery.extend({
      status: z
        .enum(['pending', 'decided', 'approved', 'rejected', 'expired', 'canceled'])
        .default('pending')
        .meta({ description: '`decided`: approved or rejected' }),
      mine: z
        .enum(['true', 'false'])
        .default('false')
        .meta({ description: '`true`: those that you may decide or, if closed, that you voted on or edited' }),
    }),
    responses: { 200: page('approvals', Approval) },
  }),
  getApproval: route({
    method: 'GET',
    path: '/api/v1/approvals/{id}',
    right: 'approvals:read',
    summary: 'Returns an approval, with what the caller needs to decide',
    params: approvalParams,
    responses: { 200: Approval.extend({ forDecision: ForDecision }) },
  }),
  decideApproval: route({
    method: 'POST',
    path: '/api/v1/approvals/{id}/decision',
    right: 'approvals:respond',
    peopleOnly: true,
    summary: 'Approves, rejects or edits a pending write',
    description:
      'The decision is for exactly the write that `actionHash` identifies. If the write has changed since, the response is ' +
      '409 `APPROVAL_STALE`. Repeating a decision changes nothing.',
    params: approvalParams,
    body: DecisionBody,
    example: { decision: 'reject', reason: 'the change freeze is on', actionHash: EXAMPLE_HASH },
    responses: { 200: DecisionResult },
  }),
  approveRun: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/approve',
    right: 'approvals:respond',
    peopleOnly: true,
    summary: 'Approves the only open approval of a run',
    params: runParams,
    body: z.strictObject(Seen),
    example: { actionHash: EXAMPLE_HASH },
    responses: { 200: DecisionResult },
  }),
  rejectRun: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/reject',
    right: 'approvals:respond',
    peopleOnly: true,
    summary: 'Rejects the only open approval of a run',
    params: runParams,
    body: Rejection,
    example: { reason: 'the change freeze is on', actionHash: EXAMPLE_HASH },
    responses: { 200: DecisionResult },
  }),
};

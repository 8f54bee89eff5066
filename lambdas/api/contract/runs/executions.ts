import * as z from 'zod';
import { ProfileName } from '../../../agents/agent-terms.ts';
import type { ProposedAction } from '../../../policy/policy.ts';
import { EXECUTION_STATE } from '../../../run/statuses/execution-state.ts';
import { VALIDATION_MODES } from '../../../run/validation-mode.ts';
import { APPROVAL_TASK_STATE, EXECUTION_EVENTS, STEP_STATE } from '../../runs/execution-vocabulary.ts';
import { route } from '../route.ts';
import { JsonValue, json, large, PAGE_MAX, RecordedError, runParams, Timestamp } from '../schemas.ts';
import { SUBJECT_MAX_CHARACTERS } from './start.ts';

/** The executions API of source 001, 3.1: runs, with its names. Nothing can be done here that the other routes forbid. */
const state = <Names extends Record<string, string>>(names: Names) =>
  z.enum(Object.values(names) as Names[keyof Names][]);
const SessionState = state(EXECUTION_STATE);
const StepNumber = z.int().min(1).meta({ description: 'From 1, in the order of the workflow' });
const ValidationMode = z.enum(VALIDATION_MODES);
const NOTES_MAX_CHARACTERS = 2000;
const ROLLBACK_REASON_MAX_CHARACTERS = 500;

const ExecutionBody = z.strictObject({
  ticket_id: z.string().trim().min(1).max(SUBJECT_MAX_CHARACTERS).meta({
    description: 'The subject of the run. An input `ticket_id` of the workflow gets it, too',
    example: 'INC0012345',
  }),
  runbook_id: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,62}(@[1-9]\d{0,8})?$/, 'write the name of a workflow, or name@version')
    .optional()
    .meta({
      description: 'A workflow. Default: the workflow of the last run about the ticket',
      example: 'restart-web',
    }),
  validation_mode: ValidationMode.optional().meta({
    description: 'At least as strict as that of the workflow: it adds approvals and never removes one',
  }),
  environment_profile: ProfileName.optional().meta({ description: 'Commands with another profile are refused' }),
  inputs: z.record(z.string(), JsonValue).optional().meta({ description: 'Values for the inputs of the workflow' }),
});
export type ExecutionBody = z.infer<typeof ExecutionBody>;

const StartedExecution = z.object({
  session_id: z.string(),
  ticket_id: z.string(),
  runbook_id: z.string(),
  validation_mode: ValidationMode.nullable(),
  environment_profile: z.string().nullable(),
  created_at: Timestamp,
});

const ExecutionStep = z.object({
  step_number: StepNumber,
  step_id: z.string(),
  tool: z.string(),
  state: state(STEP_STATE),
  blast_radius: z.string().nullable(),
  sandbox_profile: z.string().nullable(),
  worker_id: z.string().nullable(),
  approval_id: z.string().nullable(),
  action_hash: z.string().nullable().meta({ description: 'Of a step that waits: send it with the decision' }),
  exit_code: z.int().nullable(),
  output_sha256: z.string().nullable(),
  credentials_used: z.array(z.string()),
  error: RecordedError.nullable(),
});

const ApprovalTask = z.object({
  approval_id: z.string(),
  step_number: StepNumber,
  state: state(APPROVAL_TASK_STATE),
  action_hash: z.string().meta({ description: 'Identifies exactly what is approved' }),
  action: json<ProposedAction>('The write, with its values').optional(),
  message: large(z.string()).optional(),
  quorum: z.int(),
  tier: z.string(),
  votes: z.array(z.object({ person: z.string(), approved: z.boolean(), notes: z.string().nullable(), at: Timestamp })),
  requested_at: Timestamp,
  sla_at: Timestamp,
  expires_at: Timestamp,
});
export type ApprovalTask = z.infer<typeof ApprovalTask>;

const Output = z.object({
  step_number: StepNumber,
  chunks: z.array(
    z.object({
      stream_seq: z.int(),
      chunk_type: z.enum(['stdout', 'stderr', 'status']),
      timestamp: Timestamp,
      data: z.string(),
    }),
  ),
  complete: z.boolean(),
});

export const Execution = z.object({
  session_id: z.string(),
  state: SessionState,
  ticket_id: z.string().nullable(),
  runbook_id: z.string(),
  validation_mode: ValidationMode.nullable(),
  environment_profile: z.string().nullable(),
  current_step: StepNumber.nullable(),
  steps: z.array(ExecutionStep),
  next_steps_cursor: z.string().nullable().meta({ description: '`cursor` for further steps' }),
  approvals: z.array(ApprovalTask),
  output: Output.nullable().meta({
    description: 'The last output of the last command. All of it: GET /api/v1/runs/{id}/steps/{index}/output',
  }),
  error: RecordedError.nullable(),
  rollback_session_id: z.string().nullable().meta({ description: 'The execution that undoes the writes of this one' }),
  created_at: Timestamp,
  updated_at: Timestamp,
  completed_at: Timestamp.nullable(),
});
Execution.register(z.globalRegistry, { id: 'Execution' });
export type Execution = z.infer<typeof Execution>;

const ExecutionEventEnvelope = z.object({
  event: z.enum(EXECUTION_EVENTS),
  event_id: z.string().meta({
    description: 'The id that the live feed gives this event: the run, the commit, and the number of the event in it',
  }),
  session_id: z.string(),
  step_number: StepNumber.nullable(),
  timestamp: Timestamp,
  payload: json('The event of the commit'),
  meta: z.object({
    worker_id: z.string().nullable(),
    environment: z.string().nullable(),
    sandbox_profile: z.string().nullable(),
  }),
});
export type ExecutionEventEnvelope = z.infer<typeof ExecutionEventEnvelope>;

export const executionStartRoutes = {
  startExecution: route({
    method: 'POST',
    path: '/api/v1/executions',
    right: 'runs:start',
    summary: 'Starts a run of a workflow for a ticket',
    idempotent: true,
    body: ExecutionBody,
    example: { ticket_id: 'INC0012345', runbook_id: 'restart-web', validation_mode: 'per_step' },
    responses: { 200: StartedExecution, 201: StartedExecution },
  }),
};

export const executionReadRoutes = {
  getExecution: route({
    method: 'GET',
    path: '/api/v1/executions/{id}',
    right: 'runs:read',
    summary: 'Returns a run as an execution: steps, approvals, and the last output',
    params: runParams,
    query: z.strictObject({ cursor: z.string().optional().meta({ description: 'For further steps' }) }),
    responses: { 200: Execution },
  }),
  listExecutionEvents: route({
    method: 'GET',
    path: '/api/v1/executions/{id}/events',
    right: 'runs:read',
    summary: 'Lists the events of an execution after a cursor. Poll it if no socket is available',
    params: runParams,
    query: z.strictObject({
      since: z.coerce.number().int().min(0).default(0).meta({ description: '`next` of the last response' }),
      limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_MAX).meta({ description: 'Commits to read' }),
    }),
    responses: {
      200: z.object({
        state: SessionState,
        events: z.array(ExecutionEventEnvelope),
        next: z.int(),
        more: z.boolean().meta({ description: 'There is more to read now' }),
      }),
    },
  }),
};

export const executionApprovalRoutes = {
  approveExecutionStep: route({
    method: 'POST',
    path: '/api/v1/executions/{id}/approve',
    right: 'approvals:respond',
    peopleOnly: true,
    summary: 'Approves or rejects the pending write of a step',
    description:
      'The decision is for exactly the write that `action_hash` identifies. Without it, or if the write has changed since, the ' +
      'response is 409 `APPROVAL_STALE` with the current write in `current`. Who may decide is checked as for every approval.',
    params: runParams,
    body: z.strictObject({
      step_number: StepNumber,
      approved: z.boolean(),
      action_hash: z.string().optional().meta({ description: 'As GET shows it for the step' }),
      notes: z.string().trim().max(NOTES_MAX_CHARACTERS).optional().meta({ description: 'Required for a rejection' }),
      approver_role: z
        .string()
        .optional()
        .meta({ description: 'Rights come from the caller. A role that is not theirs is refused' }),
    }),
    example: { step_number: 2, approved: false, notes: 'the change freeze is on', action_hash: '9f2c…' },
    responses: {
      200: z.object({
        session_id: z.string(),
        step_number: StepNumber,
        outcome: z.enum(['counted', 'approved', 'rejected', 'edited', 'already']),
        approvals_missing: z.int().nullable(),
        approval: ApprovalTask,
      }),
    },
  }),
};

export const executionControlRoutes = {
  rollBackExecution: route({
    method: 'POST',
    path: '/api/v1/executions/{id}/rollback',
    right: 'runs:control',
    summary: 'Undoes the writes of an execution, newest first; from one step on, if it has ended',
    params: runParams,
    body: z.strictObject({
      step_number: StepNumber.optional().meta({
        description: 'Undo this write and all later ones. Only of an execution that has ended',
      }),
      reason: z.string().max(ROLLBACK_REASON_MAX_CHARACTERS).optional(),
    }),
    example: { step_number: 2, reason: 'the new version fails' },
    responses: {
      200: z.object({ session_id: z.string(), state: SessionState, rollback_session_id: z.string().nullable() }),
    },
  }),
};

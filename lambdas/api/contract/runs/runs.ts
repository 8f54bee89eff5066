import * as z from 'zod';
import type { Right } from '../../../people/rights.ts';
import { ERROR_CODES } from '../../../run/errors.ts';
import type { CommitEvent } from '../../../run/events/events.ts';
import type { By } from '../../../run/events/run-events.ts';
import type { CommandRecord, Cost, Reversal, TouchedState } from '../../../run/receipt.ts';
import { RESOLVED_AS, RunStatus, TRIGGER_SOURCES, WRITE_FINDINGS } from '../../../run/run.ts';
import type { SessionFacts } from '../../../run/session.ts';
import type { Awaited, Governed } from '../../../run/step.ts';
import { VALIDATION_MODES } from '../../../run/validation-mode.ts';

import { Approval } from '../approvals.ts';
import { EvidenceRecord } from '../evidence.ts';
import { route } from '../route.ts';
import {
  JsonValue,
  json,
  large,
  PAGE_MAX,
  PageQuery,
  PointInTime,
  page,
  RecordedError,
  runParams,
  Timestamp,
} from '../schemas.ts';

const WorkflowVersion = z.object({ name: z.string(), version: z.int() });

/** Who requested a run that no webhook started, and what it repeats or applies. */
export const RunRequest = z.object({
  actor: z.string().meta({ description: 'A person, a program, or `schedule:NAME`' }),
  rerunOf: z.string().optional().meta({ description: 'The run whose trigger it repeats' }),
  replay: z
    .object({ of: z.string(), from: z.string(), root: z.string().optional() })
    .optional()
    .meta({ description: 'The run that it replays, and the first step that it repeats' }),
  planHash: z.string().optional().meta({ description: 'The plan that it applies' }),
  slot: Timestamp.optional().meta({ description: 'The time of the schedule that started it' }),
  validationMode: z
    .enum(VALIDATION_MODES)
    .optional()
    .meta({ description: 'Approvals in addition to those of the workflow' }),
  profile: z.string().optional().meta({ description: 'The only profile with which its commands may run' }),
  action: z
    .object({
      tool: z.string(),
      inputHash: z.string(),
      of: z.object({ runId: z.string(), step: z.string() }).optional(),
    })
    .optional()
    .meta({ description: 'The run makes this one call, which a session (`of`), a person or a program proposed' }),
});

const RunTrigger = z.object({ source: z.enum(TRIGGER_SOURCES), event: z.string(), key: z.string() });

/** The response to every request that starts a run. Nothing of it changes later. */
export const StartedRun = z.object({
  runId: z.string().meta({ example: 'run_019a2f6c4d1e' }),
  automation: z.string(),
  workflow: WorkflowVersion,
  trigger: RunTrigger,
  subject: z.string().optional(),
  request: RunRequest,
  createdAt: Timestamp,
});

/** What a person recorded after the run had ended. The status of the run stays. */
const Resolution = z.object({
  outcome: z.enum(RESOLVED_AS),
  actor: z.string(),
  at: Timestamp,
  reason: z.string(),
  writes: z.record(z.string(), z.enum(WRITE_FINDINGS)).meta({ description: 'By step, for each unknown write' }),
});

export const RunSummary = z.object({
  runId: z.string().meta({ example: 'run_019a2f6c4d1e' }),
  status: RunStatus,
  title: z.string().nullable(),
  subject: z.string().nullable().meta({ example: 'github:octo-org/payments#7' }),
  automation: z.string(),
  workflow: WorkflowVersion,
  trigger: RunTrigger,
  request: RunRequest.nullable(),
  createdAt: Timestamp,
  startedAt: Timestamp.nullable(),
  updatedAt: Timestamp,
  completedAt: Timestamp.nullable(),
  durationMs: z.number().nullable(),
  currentStep: z.string().nullable(),
  resumeCount: z.int(),
  cancellation: z.object({ actor: z.string(), at: Timestamp, reason: z.string().optional() }).nullable(),
  approvalOverdueSince: Timestamp.nullable(),
  error: RecordedError.nullable(),
  assignee: z.string().nullable().meta({ description: 'The person who takes care of the run' }),
  resolution: Resolution.nullable(),
  rollbackOf: z.string().nullable().meta({ description: 'The run whose writes this run undoes' }),
  rolledBackBy: z.string().nullable().meta({ description: 'The run that undoes the writes of this ended run' }),
});
RunSummary.register(z.globalRegistry, { id: 'RunSummary' });
export type RunSummary = z.infer<typeof RunSummary>;

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

/** A commit of the run's hash chain. Events are shown in full, so that the chain can be verified. */
export const Commit = z.object({
  seq: z.int(),
  at: Timestamp,
  events: z.array(z.looseObject({ type: z.string() }) as unknown as z.ZodType<CommitEvent, CommitEvent>),
  prevHash: z.string(),
  hash: z.string(),
});
Commit.register(z.globalRegistry, { id: 'Commit' });

const StopRequest = z.object({
  kind: z.enum(['cancel', 'pause', 'rollback']),
  actor: z.string(),
  reason: z.string().optional(),
  at: Timestamp,
});

const RUN_ACTIONS = [
  ...(['retry', 'resume', 'signal', 'pause', 'cancel', 'rollback'] as const),
  ...(['resolve', 'rerun', 'replay', 'assign', 'release'] as const),
] as const;

const RunAction = z.object({
  action: z.enum(RUN_ACTIONS).meta({ description: 'The last part of the path of its route' }),
  effect: z.string().meta({ description: 'What it does' }),
  may: z.boolean(),
  why: z.string().optional().meta({ description: 'Why the caller may not, or cannot now' }),
  about: z.string().optional().meta({ description: 'The step to retry, or the signal that is waited for' }),
  command: z.string().meta({ description: 'The same on the command line' }),
});
RunAction.register(z.globalRegistry, { id: 'RunAction' });
export type RunAction = z.infer<typeof RunAction>;

export const RunDetail = RunSummary.extend({
  actions: z.array(RunAction).meta({ description: 'What can be done with the run now, by the caller or by others' }),
  enrichment: z
    .object({
      title: z.string(),
      actor: z.string().optional(),
      severity: z.string().optional(),
      links: z.array(z.string()),
    })
    .nullable(),
  inputs: json<Record<string, unknown> | null>('What the run was started with; once it has started, with defaults'),
  deadlineAt: Timestamp,
  trace: z
    .object({ id: z.string(), url: z.string().nullable() })
    .meta({ description: 'The OpenTelemetry trace of the run. `url`: where people see it, if the stage says so' }),
  flags: z
    .record(z.string(), z.boolean())
    .nullable()
    .meta({ description: 'The flags that change what a run does, as they were when it started' }),
  result: json('The output of the last step, once the run has succeeded'),
  head: z.object({ seq: z.int(), hash: z.string() }),
  steps: z.array(Step),
  approvals: z.array(Approval),
  receipts: z.array(Receipt),
  nextStepsCursor: z.string().nullable().meta({ description: 'Cursor for GET /api/v1/runs/{id}/steps' }),
  stopRequest: StopRequest.nullable(),
  rollback: z
    .object({
      endsAs: z.enum(['failed_terminal', 'canceled', 'succeeded']),
      actor: z.string(),
      at: Timestamp,
      error: RecordedError.optional(),
    })
    .nullable(),
  compensation: z.array(
    z.object({
      step: z.string(),
      receiptKey: z.string(),
      outcome: z.enum(['reversed', 'drifted', 'irreversible', 'refused', 'unknown', 'kept']),
      reason: z.string().optional(),
    }),
  ),
  reruns: z
    .array(
      z.object({ runId: z.string(), kind: z.enum(['rerun', 'replay']), requestedBy: z.string(), createdAt: Timestamp }),
    )
    .meta({ description: 'The newest runs that repeat this one' }),
  commits: z.array(Commit),
  moreCommitsSince: z.int().optional().meta({ description: 'Set if there are more: `since` of the events route' }),
  evidence: EvidenceRecord.nullable(),
});
RunDetail.register(z.globalRegistry, { id: 'RunDetail' });
export type RunDetail = z.infer<typeof RunDetail>;

const stepsWithWrites = {
  steps: z.array(Step),
  receipts: z.array(Receipt),
  approvals: z.array(Approval),
};

const TrueOrFalse = z.enum(['true', 'false']).optional();
const NAME_MAX_CHARACTERS = 1_000;
const Name = z.string().min(1).max(NAME_MAX_CHARACTERS).optional();

/** Selects runs. A run must match every field. */
export const runFilterFields = {
  status: RunStatus.optional(),
  automation: Name,
  workflow: Name,
  subject: Name.meta({ description: 'For example INC0010001 or octo-org/payments#7' }),
  assignee: Name,
  errorCode: z.enum(ERROR_CODES).optional(),
  overdue: TrueOrFalse.meta({ description: 'Runs with an approval that is past its SLA' }),
  needsResolution: TrueOrFalse.meta({ description: 'Runs that ended as needs_human and are not resolved' }),
  since: PointInTime.optional().meta({ description: 'Accepted at this time or later' }),
  until: PointInTime.optional().meta({ description: 'Accepted at this time or earlier' }),
  text: Name.meta({ description: 'A part of the title' }),
};
export const RunFilterQuery = z.strictObject(runFilterFields);

export const RunCounts = z.object({
  byStatus: z.array(
    z.object({
      status: RunStatus,
      count: z.int(),
      atLeast: z.literal(true).optional().meta({ description: 'There are more than `count`' }),
    }),
  ),
  countedBackTo: Timestamp.optional().meta({ description: 'Set if older runs were not counted' }),
});

export const runRoutes = {
  listRuns: route({
    method: 'GET',
    path: '/api/v1/runs',
    right: 'runs:read',
    summary: 'Lists runs, the newest first. A page can have fewer runs than `limit` although more follow',
    query: PageQuery.extend({ ...runFilterFields, counts: TrueOrFalse }),
    responses: {
      200: page('runs', RunSummary).extend({
        searchedBackTo: Timestamp.optional().meta({
          description: 'Set if the filter was applied run by run: all runs accepted since then were examined',
        }),
        counts: RunCounts.optional(),
      }),
    },
  }),
  getRun: route({
    method: 'GET',
    path: '/api/v1/runs/{id}',
    right: 'runs:read',
    summary: 'Returns a run with its first steps, receipts, approvals and commits',
    params: runParams,
    responses: { 200: RunDetail },
  }),
  listRunEvents: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/events',
    right: 'runs:read',
    summary: 'Lists the commits of a run after a number',
    params: runParams,
    query: z.strictObject({
      since: z.coerce.number().int().min(0).default(0),
      limit: z.coerce.number().int().min(1).max(PAGE_MAX).default(PAGE_MAX),
    }),
    responses: {
      200: z.object({ status: RunStatus, commits: z.array(Commit), next: z.int(), more: z.boolean() }),
    },
  }),
  listRunSteps: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/steps',
    right: 'runs:read',
    summary: 'Lists the steps of a run with their receipts and approvals',
    params: runParams,
    query: PageQuery,
    responses: { 200: z.object({ ...stepsWithWrites, nextCursor: z.string().nullable() }) },
  }),
  getRunStep: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/steps/{index}',
    right: 'runs:read',
    summary: 'Returns one step with every value in full',
    params: runParams.extend({ index: z.string().meta({ description: 'Number of the step, from 0' }) }),
    responses: {
      200: z.object({ step: Step, receipt: Receipt.nullable(), approvals: z.array(z.string()) }),
    },
  }),
};

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

const REASON_MAX_CHARACTERS = 500;
const EVENT_MAX_CHARACTERS = 100;
const Reason = z.strictObject({ reason: z.string().max(REASON_MAX_CHARACTERS).optional() });
/** Evidence shows it unchanged, so it must look like an ID and cannot be a sentence. */
const EventId = z.string().regex(/^[\w.:/-]{1,200}$/, 'use 1 to 200 letters, digits and . : / _ -');

const runCommand = <const Command extends string, Body extends z.ZodType>(
  command: Command,
  summary: string,
  body: Body,
  example?: unknown,
) =>
  route({
    method: 'POST',
    path: `/api/v1/runs/{id}/${command}`,
    right: 'runs:control',
    summary,
    params: runParams,
    body,
    ...(example !== undefined && { example }),
    responses: { 200: RunSummary },
  });

export const controlRoutes = {
  cancelRun: runCommand('cancel', 'Cancels a run', Reason),
  pauseRun: runCommand('pause', 'Pauses a run', Reason),
  resumeRun: runCommand('resume', 'Resumes a paused run', z.strictObject({})),
  retryRun: runCommand('retry', 'Retries a failed step of a run', z.strictObject({ step: z.string().optional() })),
  cancelSession: runCommand(
    'cancel-session',
    'Cancels the session of a step. The step fails, and `onFailure` of the workflow decides about the run',
    Reason.extend({
      step: z.string().optional().meta({ description: 'ID of the step, if several have an open session' }),
    }),
  ),
  rollBackRun: runCommand(
    'rollback',
    'Undoes the writes of a run; of an ended run by another run, which `rolledBackBy` names',
    Reason,
  ),
  signalRun: runCommand(
    'signal',
    'Sends a signal to a step that waits for one',
    z.strictObject({
      event: z.string().min(1).max(EVENT_MAX_CHARACTERS),
      payload: JsonValue.default(null),
      id: EventId.optional(),
    }),
    { event: 'deploy.finished', payload: { version: '1.4.2' }, id: 'deploy-731' },
  ),
};

const personCommand = <const Command extends string, const Needed extends Right, Body extends z.ZodType>(
  command: Command,
  right: Needed,
  summary: string,
  body: Body,
) => route({ ...runCommand(command, summary, body), right, peopleOnly: true });

const Notified = z.discriminatedUnion('type', [
  z.object({ type: z.literal('slack_channel'), channel: z.string() }),
  z.object({ type: z.literal('slack_dm_user'), person: z.string() }),
  z.object({ type: z.literal('slack_thread'), channel: z.string(), threadTs: z.string() }),
]);

const Subscription = z.object({
  to: Notified,
  notifiedAt: Timestamp.nullable().meta({ description: 'When the message was posted' }),
  skipped: z.string().nullable().meta({ description: 'Why none is posted: there is no such channel or person' }),
});

export const subscriptionRoutes = {
  subscribeRun: route({
    method: 'POST',
    path: '/api/v1/runs/{id}/subscriptions',
    right: 'runs:subscribe',
    summary: 'Notifies you, or a Slack channel, of the end of a run, once',
    params: runParams,
    body: z.strictObject({
      channel: z
        .string()
        .min(1)
        .max(80)
        .optional()
        .meta({ description: 'A Slack channel; operators may name one. Without it, you get a direct message' }),
    }),
    responses: { 200: z.object({ runId: z.string(), subscriptions: z.array(Subscription) }) },
  }),
  listSubscriptions: route({
    method: 'GET',
    path: '/api/v1/runs/{id}/subscriptions',
    right: 'runs:read',
    summary: 'Lists who is notified of the end of a run: at most 50',
    params: runParams,
    responses: { 200: z.object({ runId: z.string(), subscriptions: z.array(Subscription) }) },
  }),
};

/** What people record about a run, also after it has ended. */
export const caseRoutes = {
  assignRun: personCommand(
    'assign',
    'runs:assign',
    'Assigns a run to a person, by default to you; 409 if another person has it',
    z.strictObject({ assignee: z.string().min(1).optional().meta({ description: 'ID of the person' }) }),
  ),
  releaseRun: personCommand(
    'release',
    'runs:assign',
    'Releases a run, so that another person can take it',
    z.strictObject({}),
  ),
  resolveRun: personCommand(
    'resolve',
    'runs:resolve',
    'Records the result of a run that ended without success, and whether each unknown write was made',
    z.strictObject({
      outcome: z.enum(RESOLVED_AS),
      reason: z.string().trim().min(1, 'give a reason').max(REASON_MAX_CHARACTERS),
      writes: z
        .record(z.string(), z.enum(WRITE_FINDINGS))
        .default({})
        .meta({ description: 'By step, for each write of unknown outcome' }),
    }),
  ),
  acceptBrokenRules: personCommand(
    'accept-broken-rules',
    'evidence:accept-broken-rules',
    'Accepts that an ended run broke rules, so that its evidence is sealed as such',
    z.strictObject({
      rules: z
        .array(z.int().min(1))
        .min(1, 'name at least one rule')
        .max(100)
        .meta({ description: 'The numbers of the rules that the log of the sealer names' }),
      reason: z.string().trim().min(1, 'give a reason').max(REASON_MAX_CHARACTERS),
    }),
  ),
};

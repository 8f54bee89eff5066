import * as z from 'zod';
import { ERROR_CODES } from '../../../run/errors.ts';
import type { CommitEvent } from '../../../run/events/events.ts';
import { RESOLVED_AS, RunStatus, TRIGGER_SOURCES, WRITE_FINDINGS } from '../../../run/run.ts';
import { VALIDATION_MODES } from '../../../run/validation-mode.ts';
import { Approval } from '../approvals.ts';
import { EvidenceRecord } from '../evidence.ts';
import { route } from '../route.ts';
import { json, PAGE_MAX, PageQuery, PointInTime, page, RecordedError, runParams, Timestamp } from '../schemas.ts';
import { Receipt, Step } from './steps.ts';

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
  assignee: z.string().nullable().meta({ description: 'The person to whom the run is assigned' }),
  resolution: Resolution.nullable(),
  rollbackOf: z.string().nullable().meta({ description: 'The run whose writes this run undoes' }),
  rolledBackBy: z.string().nullable().meta({ description: 'The run that undoes the writes of this ended run' }),
});
RunSummary.register(z.globalRegistry, { id: 'RunSummary' });
export type RunSummary = z.infer<typeof RunSummary>;

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

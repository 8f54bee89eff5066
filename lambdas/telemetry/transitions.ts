import type { Approval } from '../run/approval.ts';
import type { RunChange } from '../run/commit.ts';
import type { CommitEvent, EventOf } from '../run/events/events.ts';
import type { Receipt } from '../run/receipt.ts';
import { isTerminal, type RunStatus } from '../run/run.ts';
import { EXECUTION_STATE } from '../run/statuses/execution-state.ts';
import { type Step, type Steps, UNDO_INDEX_OFFSET } from '../run/step.ts';
import { connectorDimension, counted, METRICS, type Measurement, measured } from './metrics.ts';
import { traceIdOf } from './trace-context.ts';

export type Level = 'DEBUG' | 'INFO' | 'WARN' | 'ERROR';

/** One line of the log, with the metrics that follow from it. Fields are metadata: no payload, no text of a person. */
export interface Transition {
  level: Level;
  fields: Readonly<Record<string, string | number | boolean | undefined>>;
  measurements: Measurement[];
}

/** A commit, and the steps before it. */
export type Observed = Pick<RunChange, 'run' | 'commit'> &
  Partial<Pick<RunChange, 'steps' | 'receipts' | 'approvals' | 'assignments'>> & {
    before?: Steps;
    environment: 'prod' | 'staging' | 'dev';
  };

type Details = Partial<Omit<Transition, 'fields'>> & { fields?: Transition['fields'] };
type Lines = { [Type in CommitEvent['type']]?: (event: EventOf<Type>, observed: Observed) => Details | undefined };

const HASH_SHOWN = 16;

/** The events of a commit that are transitions of a run, a step or an approval. The others follow from these. */
const LINES: Lines = {
  'run.accepted': ({ source, automation, workflow }, { run }) => ({
    fields: {
      ...{ status: run.status, source, automation, workflow: workflow.name, workflow_version: workflow.version },
      trace_id: traceIdOf(run),
    },
    measurements: reached(run.status),
  }),
  'run.status_changed': ({ from, to, initiator, error }, { run }) => {
    const ended = isTerminal(run) && run.status === to;
    return {
      level: LEVELS[to] ?? 'INFO',
      fields: {
        ...{ from, status: to, initiator, error_code: error?.code },
        ...(ended && { duration_ms: run.durationMs, workflow: run.workflow.name, trace_id: traceIdOf(run) }),
      },
      measurements: [
        ...reached(to, from),
        ...(ended ? [measured(METRICS.runDuration, run.durationMs / 1000, { status: run.status })] : []),
      ],
    };
  },
  'run.resumed': ({ because, resumeCount }) => ({ level: 'WARN', fields: { because, attempt: resumeCount } }),
  'step.claimed': ({ index, attempt, tool }, { before, commit }) => {
    const step = before?.get(index);
    // An approved step is `ready` since the decision.
    const waitedMs = step?.status === 'ready' ? since(step.updatedAt, commit.at) : undefined;
    return {
      fields: { tool, attempt },
      measurements: waitedMs === undefined ? [] : [measured(METRICS.decisionToStep, waitedMs / 1000, {})],
    };
  },
  'step.assigned': ({ agent, profile }) => ({ fields: { worker_id: agent, sandbox_profile: profile } }),
  'step.unassigned': ({ because }) => ({
    level: 'WARN',
    fields: { because },
    measurements: because === 'no_agent' ? [counted(METRICS.workerAssignments, { status: 'no_agent' })] : [],
  }),
  'step.command_ended': ({ status, exitCode, durationMs, violations }) => ({
    level: violations.length > 0 ? 'WARN' : 'INFO',
    fields: { status, exit_code: exitCode ?? undefined, duration_ms: durationMs },
    measurements: violations.map(() => counted(METRICS.profileViolations, {})),
  }),
  'step.late_result': ({ agent, status }) => ({ level: 'WARN', fields: { worker_id: agent, status } }),
  'step.waiting': ({ awaits }) => ({ fields: { awaits } }),
  'step.signaled': () => ({}),
  'step.succeeded': (event, observed) => ended(event, observed, { fields: { skipped: event.skipped } }),
  'step.retry_scheduled': (event, observed) =>
    ended(event, observed, {
      level: 'WARN',
      fields: { error_code: event.error.code, flag: event.flag },
      measurements:
        event.flag === undefined ? [counted(METRICS.retries, { connector: connectorOf(event, observed) })] : [],
    }),
  'step.failed': (event, observed) =>
    ended(event, observed, {
      level: 'ERROR',
      fields: { error_code: event.error.code },
      measurements: [counted(METRICS.stepFailures, { connector: connectorOf(event, observed) })],
    }),
  'step.canceled': () => ({}),
  'write.settled': ({ outcome, receiptKey }, { receipts = [] }) => {
    if (outcome !== 'unknown') return undefined;
    const tool = receipts.find(({ receipt }) => receipt.key === receiptKey)?.receipt.tool ?? '';
    return {
      level: 'ERROR',
      fields: { outcome },
      measurements: [counted(METRICS.unknownOutcomes, { connector: connectorDimension(tool) })],
    };
  },
  'write.compensated': ({ outcome }) => ({ fields: { outcome } }),
  'approval.requested': ({ asks, tier, quorum }) => ({ fields: { asks, tier, quorum } }),
  'approval.decided': ({ approvalId, status }, observed) => closed(approvalId, observed, { fields: { status } }),
  'approval.expired': ({ approvalId }, observed) => closed(approvalId, observed, { level: 'WARN' }),
  'approval.canceled': () => ({}),
  'approval.overdue': () => ({ level: 'WARN', measurements: [counted(METRICS.approvalsOverdue, {})] }),
};

const LEVELS: Partial<Record<RunStatus, Level>> = {
  failed_retryable: 'WARN',
  failed_terminal: 'ERROR',
  needs_human: 'ERROR',
  timed_out: 'ERROR',
};

/** The lines of a commit, in the order of its events. */
export function transitionsOf(observed: Observed): Transition[] {
  const { run, commit, assignments = [] } = observed;
  const lines = commit.events.flatMap((event): Transition[] => {
    const line = LINES[event.type] as ((event: CommitEvent, observed: Observed) => Details | undefined) | undefined;
    const details = line?.(event, observed);
    if (!details) return [];
    const fields = {
      ...{ timestamp: commit.at, event_type: event.type, tenant_id: run.tenant, session_id: run.runId },
      ...stepFields(event, observed),
      ...details.fields,
    };
    return [{ level: details.level ?? 'INFO', fields, measurements: details.measurements ?? [] }];
  });
  for (const { assignment } of assignments) {
    const { status, result } = assignment;
    const counts = [
      counted(METRICS.workerAssignments, { status }),
      ...(result?.credentialsUsed ?? []).map(({ source, fetchMs }) =>
        measured(METRICS.credentialFetch, fetchMs / 1000, { source }),
      ),
    ];
    const line = lines.find(({ fields }) => fields.step_number === assignment.stepIndex + 1) ?? lines[0];
    line?.measurements.push(...counts);
  }
  return lines;
}

/** The step that an event is about. Some name it only by its id. */
function stepOf(event: CommitEvent, { steps = [], before }: Observed): Step | undefined {
  if ('index' in event) return steps.find(({ step }) => step.index === event.index)?.step ?? before?.get(event.index);
  const ofEvent = (each: Step) => 'step' in event && each.id === event.step;
  return steps.map(({ step }) => step).find(ofEvent) ?? [...(before?.values() ?? [])].find(ofEvent);
}

/** The fields of source 001, 6.2. */
function stepFields(event: CommitEvent, observed: Observed): Transition['fields'] {
  if (!('step' in event)) return {};
  const step = stepOf(event, observed);
  const approval = approvalOf(event, observed);
  const index = 'index' in event ? event.index : (step?.index ?? approval?.stepIndex);
  const action = step?.governed?.request.action ?? approval?.action;
  const undoes = index !== undefined && index >= UNDO_INDEX_OFFSET;
  return {
    ...(index !== undefined && { step_number: undoes ? index - UNDO_INDEX_OFFSET + 1 : index + 1 }),
    ...(undoes && { undo: true }),
    step: event.step,
    worker_id: step?.assigned?.agentId,
    sandbox_profile: step?.assigned?.profile,
    command_hash: index === undefined ? undefined : receiptOf(index, observed)?.requestHash.slice(0, HASH_SHOWN),
    approval_id: 'approvalId' in event ? event.approvalId : step?.governed?.approvalId,
    blast_radius: action?.blastRadius,
  };
}

const receiptOf = (stepIndex: number, { receipts = [] }: Observed): Receipt | undefined =>
  receipts.find(({ receipt }) => receipt.stepIndex === stepIndex)?.receipt;

function approvalOf(event: CommitEvent, { approvals = [] }: Observed): Approval | undefined {
  if (!('approvalId' in event)) return undefined;
  return approvals.find(({ approval }) => approval.approvalId === event.approvalId)?.approval;
}

/** A run and its execution reached a status; the execution may have had this state before. */
function reached(status: RunStatus, from?: RunStatus): Measurement[] {
  const state = EXECUTION_STATE[status];
  const changes = from === undefined || EXECUTION_STATE[from] !== state;
  return [
    counted(METRICS.runTransitions, { status }),
    ...(changes ? [counted(METRICS.sessionTransitions, { state })] : []),
  ];
}

type OfStep = Extract<CommitEvent, { index: number }>;

const toolOf = (event: OfStep, observed: Observed): string => stepOf(event, observed)?.tool ?? '';
const connectorOf = (event: OfStep, observed: Observed) => connectorDimension(toolOf(event, observed));

/** An attempt ended. A step that made no call, e.g. because policy denied it, has no duration. */
function ended(event: OfStep, observed: Observed, { measurements = [], fields, ...details }: Details): Details {
  const receipt = receiptOf(event.index, observed);
  const connector = connectorOf(event, observed);
  const isSettled = receipt && 'settledAt' in receipt && receipt.settledAt === observed.commit.at;
  if (!isSettled) return { ...details, measurements, fields: { ...fields, connector } };
  const durationMs = since(receipt.intentAt, receipt.settledAt);
  const environment = stepOf(event, observed)?.governed?.request.action.environment ?? observed.environment;
  const usd = spentNow(receipt);
  return {
    ...details,
    fields: { ...fields, connector, duration_ms: durationMs, cost_usd: usd },
    measurements: [
      ...measurements,
      measured(METRICS.stepDuration, durationMs / 1000, { connector, environment }),
      ...(usd === undefined ? [] : [measured(METRICS.modelCost, usd, {})]),
    ],
  };
}

/** Without the cost of earlier attempts, which is in the receipt, too. */
function spentNow(receipt: Receipt): number | undefined {
  const usd = 'cost' in receipt ? receipt.cost?.usd : undefined;
  return usd === undefined ? undefined : usd - (receipt.spentBefore?.usd ?? 0);
}

function closed(approvalId: string, observed: Observed, details: Details): Details {
  const approval = observed.approvals?.find(({ approval }) => approval.approvalId === approvalId)?.approval;
  if (!approval) return details;
  const waitedMs = since(approval.requestedAt, observed.commit.at);
  const environment = approval.action?.environment ?? observed.environment;
  return {
    ...details,
    fields: { ...details.fields, duration_ms: waitedMs },
    measurements: [measured(METRICS.approvalWait, waitedMs / 1000, { environment })],
  };
}

const since = (from: string, to: string): number => Math.max(0, Date.parse(to) - Date.parse(from));

import type { AgentState } from '../agents/agent-terms.ts';
import type { AssignmentStatus } from '../agents/assignment.ts';
import { ACTIVE_STATUSES, TERMINAL_STATUSES, TRIGGER_SOURCES } from '../run/run.ts';
import type { CommitResult } from '../run/run-store.ts';
import { ACTION_REFUSALS } from '../run/session.ts';
import { EXECUTION_STATES } from '../run/statuses/execution-state.ts';

/** One namespace per stage, so that a stage does not raise the alarms of another one in the same account. */
export const metricNamespace = (stage: string) => `Countersign/${stage}`;

/**
 * AWS bills each combination of dimension values as a metric (0.30 USD a month while it has values), so a dimension has few
 * values, all listed here. Tenants, runs, steps and agents are fields of the log.
 */
type Dimensions = Readonly<Record<string, readonly string[]>>;

export interface MetricDefinition {
  name: string;
  unit: 'Count' | 'Seconds' | 'None';
  /** `counter`: use its sum. `duration`: percentiles. `gauge`: the current value, recorded by the sweeper once a minute. */
  kind: 'counter' | 'duration' | 'gauge';
  /** The values of each dimension. Any other value is recorded as `other`. */
  dimensions: Dimensions;
  meaning: string;
}

/** Replaces a value that a dimension does not list. */
export const OTHER = 'other';

/** The first part of a tool's name. Steps without a connector (`wait`, `approval`, …) have the connector `none`. */
const CONNECTORS = ['servicenow', 'github', 'slack', 'pagerduty', 'http', 'model', 'agent', 'none'] as const;
const ENVIRONMENTS = ['prod', 'staging', 'dev'] as const;
/** `no_agent`: nobody could be asked. */
const ASSIGNED_AS = [
  'offered',
  'acknowledged',
  'withdrawn',
  'refused',
  'completed',
  'lost',
  'no_agent',
] as const satisfies readonly (AssignmentStatus | 'no_agent')[];
const AGENT_STATES = [
  'idle',
  'assigned',
  'executing',
  'errored',
  'offline',
  'draining',
] as const satisfies readonly AgentState[];
const NOT_COMMITTED = ['lost', 'no_slot', 'receipt_held'] as const satisfies readonly CommitResult['outcome'][];

const counter = <D extends Dimensions>(name: string, dimensions: D, meaning: string) =>
  ({ name, unit: 'Count', kind: 'counter', dimensions, meaning }) as const;
const duration = <D extends Dimensions>(name: string, dimensions: D, meaning: string) =>
  ({ name, unit: 'Seconds', kind: 'duration', dimensions, meaning }) as const;
const gauge = <D extends Dimensions>(name: string, dimensions: D, meaning: string) =>
  ({ name, unit: 'Count', kind: 'gauge', dimensions, meaning }) as const;

/**
 * All metrics that functions log. The dashboard, the alarms and docs/observability.md are made from it. Names of the
 * sources are as they are there.
 */
export const METRICS = {
  // Source 001, 6.1
  workerAssignments: counter(
    'worker_assignments_total',
    { status: ASSIGNED_AS },
    'Assignments to agents that changed their status.',
  ),
  sessionTransitions: counter(
    'session_state_transitions_total',
    { state: EXECUTION_STATES },
    'Executions that changed to this state, in the words of `/api/v1/executions`.',
  ),
  stepDuration: duration(
    'execution_step_duration_seconds',
    { connector: CONNECTORS, environment: ENVIRONMENTS },
    'From the claim of an attempt to its outcome: the call to the target, or the command of an agent. No waiting for people.',
  ),
  approvalWait: duration(
    'approval_wait_duration_seconds',
    { environment: ENVIRONMENTS },
    'From the request for an approval to its end: a decision, or the time at which it expired.',
  ),
  profileViolations: counter(
    'sandbox_policy_violations_total',
    {},
    'Commands that an agent stopped or refused because of their profile. The log has the rule.',
  ),
  credentialFetch: duration(
    'credential_fetch_duration_seconds',
    { source: ['vault', 'secrets_manager'] },
    'How long an agent waited for a credential.',
  ),
  openSockets: gauge(
    'websocket_active_sessions',
    {},
    'Open connections of the live feed: people, programs and agents.',
  ),

  // Source 002, 7.1
  runTransitions: counter(
    'gwi_run_transitions_total',
    { status: [...ACTIVE_STATUSES, ...TERMINAL_STATUSES] },
    'Runs that changed to this status.',
  ),
  runDuration: duration(
    'gwi_run_duration_seconds',
    { status: TERMINAL_STATUSES },
    'From accepted to ended. The number of its samples is the number of ended runs.',
  ),
  activeRuns: gauge(
    'gwi_run_active_gauge',
    { status: ACTIVE_STATUSES },
    'Runs that have this status now. A status without runs has no value.',
  ),
  idempotencyHits: counter(
    'gwi_idempotency_hits_total',
    { source: TRIGGER_SOURCES, result: ['hit', 'miss', 'conflict'] },
    'Deliveries and requests that were known (`hit`: they started nothing), new (`miss`), or known with another content.',
  ),

  // Ours
  deliveries: counter(
    'ingest_deliveries_total',
    { status: ['started', 'ignored', 'duplicate', 'conflict', 'refused', 'failed'] },
    'Webhooks by result. `ignored`: no automation matches. `refused`: signature, size or form. `failed`: our error (5xx).',
  ),
  actionsRefused: counter(
    'session_actions_refused_total',
    { result: [...ACTION_REFUSALS, 'rate_exceeded'] },
    'Calls of sessions that their steps do not allow (another tool or target, or too many), of MCP clients without this tool, and of callers with too many calls in a minute.',
  ),
  stepFailures: counter(
    'execution_step_failures_total',
    { connector: CONNECTORS },
    'Steps that failed and are not tried again.',
  ),
  retries: counter('step_retries_total', { connector: CONNECTORS }, 'Attempts that failed and are tried again.'),
  unknownOutcomes: counter(
    'unknown_outcomes_total',
    { connector: CONNECTORS },
    'Writes of which nobody knows whether they were made.',
  ),
  commitConflicts: counter(
    'commit_conflicts_total',
    { status: NOT_COMMITTED },
    'Commits that were not made: another process was first, no slot was free, or a receipt had changed.',
  ),
  modelCost: {
    ...counter('model_cost_usd', {}, 'What calls of models cost, in USD.'),
    unit: 'None',
  },
  decisionToStep: duration(
    'decision_to_step_seconds',
    {},
    'From the decision that approved a write to the start of its step. The objective is 2 s.',
  ),
  tracesDropped: counter(
    'traces_dropped_total',
    { status: ['refused', 'unreachable', 'skipped'] },
    'Traces of runs that the collector refused, that it did not accept in time, or that were not sent to it for 30 s after that.',
  ),
  agents: gauge(
    'agents_current',
    { status: AGENT_STATES },
    'Agents in this state now. A state without agents has no value.',
  ),
  approvalsWaiting: gauge('ApprovalsWaiting', {}, 'Approvals without a decision.'),
  approvalsOverdue: counter('ApprovalsOverdue', {}, 'Approvals that passed their SLA without a decision.'),
  oldestDueSeconds: {
    ...gauge('OldestDueSeconds', {}, 'Age of the oldest due row that the sweeper found.'),
    unit: 'Seconds',
  },
} as const satisfies Record<string, MetricDefinition>;

/** The value of each dimension of a metric. */
export type DimensionsOf<Metric extends MetricDefinition> = {
  [Name in keyof Metric['dimensions']]: Metric['dimensions'][Name][number] | typeof OTHER;
};

/** One value of a metric. */
export interface Measurement {
  metric: MetricDefinition;
  value: number;
  dimensions: Readonly<Record<string, string>>;
}

export interface Metrics {
  record(...measurements: readonly Measurement[]): void;
}

/** A value that is not listed becomes `other`, so that nobody outside can create metrics. */
export function measured<Metric extends MetricDefinition>(
  metric: Metric,
  value: number,
  dimensions: DimensionsOf<Metric>,
): Measurement {
  const given = dimensions as Readonly<Record<string, string>>;
  const known = Object.entries(metric.dimensions).map(([name, values]): [string, string] => {
    const each = given[name] ?? OTHER;
    return [name, values.includes(each) ? each : OTHER];
  });
  return { metric, value, dimensions: Object.fromEntries(known) };
}

export const counted = <Metric extends MetricDefinition>(metric: Metric, dimensions: DimensionsOf<Metric>) =>
  measured(metric, 1, dimensions);

/** The connector of a tool, as metrics name it. */
export const connectorDimension = (tool: string): (typeof CONNECTORS)[number] =>
  CONNECTORS.find((each) => each === tool.split('.')[0]) ?? 'none';

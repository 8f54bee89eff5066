import { describe, expect, it } from 'vitest';
import { AGENT_STATES } from '../../lambdas/agents/agent-terms.ts';
import { ASSIGNMENT_STATUSES } from '../../lambdas/agents/assignment.ts';
import { toolNames } from '../../lambdas/connectors/registry.ts';
import {
  connectorDimension,
  counted,
  METRICS,
  type Measurement,
  type MetricDefinition,
  measured,
  OTHER,
} from '../../lambdas/telemetry/metrics.ts';
import { STEP_KINDS } from '../../lambdas/workflow/step-kinds.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryTelemetry } from '../fakes/memory/memory-telemetry.ts';

const ALL: readonly MetricDefinition[] = Object.values(METRICS);
const seriesOf = ({ dimensions }: MetricDefinition) =>
  Object.values(dimensions).reduce((product, values) => product * (values.length + 1), 1);

describe('the definitions of metrics', () => {
  it('have the names of the sources', () => {
    expect(ALL.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        ...['worker_assignments_total', 'session_state_transitions_total', 'execution_step_duration_seconds'],
        ...['approval_wait_duration_seconds', 'sandbox_policy_violations_total', 'credential_fetch_duration_seconds'],
        'websocket_active_sessions',
        ...['gwi_run_transitions_total', 'gwi_run_duration_seconds', 'gwi_run_active_gauge'],
        'gwi_idempotency_hits_total',
      ]),
    );
    expect(new Set(ALL.map(({ name }) => name)).size).toBe(ALL.length);
  });

  it('have only dimensions with few, listed values: never a tenant, run, step, agent or person', () => {
    const allowed = ['status', 'state', 'connector', 'environment', 'source', 'result', 'outcome'];
    for (const metric of ALL) {
      expect(allowed, metric.name).toEqual(expect.arrayContaining(Object.keys(metric.dimensions)));
      expect(seriesOf(metric), metric.name).toBeLessThanOrEqual(36);
    }
    // If every combination had values all month, 0.30 USD each.
    expect(ALL.reduce((sum, metric) => sum + seriesOf(metric), 0)).toBeLessThan(250);
  });

  it('list every value that a dimension has', () => {
    expect(METRICS.workerAssignments.dimensions.status).toEqual(expect.arrayContaining([...ASSIGNMENT_STATUSES]));
    expect([...METRICS.agents.dimensions.status].sort()).toEqual([...AGENT_STATES].sort());
    expect(toolNames().map(connectorDimension)).not.toContain('none');
    expect(new Set(Object.keys(STEP_KINDS).map(connectorDimension))).toEqual(new Set(['none']));
  });
});

function collected(...measurements: Measurement[]) {
  const telemetry = new MemoryTelemetry(new FakeClock('2026-03-01T10:00:00.000Z'));
  telemetry.record(...measurements);
  return { lines: telemetry.lines, totals: telemetry.metrics };
}

describe('recorded metrics', () => {
  it('are not dropped by Lambda, which takes a line without level and time for INFO', () => {
    for (const level of ['WARN', 'ERROR'] as const) {
      const telemetry = new MemoryTelemetry(new FakeClock('2026-03-01T10:00:00.000Z'), { level });
      telemetry.record(counted(METRICS.tracesDropped, { status: 'refused' }));
      telemetry.note({
        level: 'INFO',
        fields: { event_type: 'x' },
        measurements: [counted(METRICS.profileViolations, {})],
      });
      telemetry.note({ level: 'ERROR', fields: { event_type: 'y' }, measurements: [] });
      const timestamp = '2026-03-01T10:00:00.000Z';
      expect(telemetry.lines).toMatchObject([
        { level, timestamp, _aws: {} },
        { level, timestamp, _aws: {} },
        { level: 'ERROR', timestamp, event_type: 'y' },
      ]);
      expect(telemetry.lines[1]).not.toHaveProperty('event_type');
    }
  });

  it('share a line unless their dimensions contradict each other', () => {
    const { lines, totals } = collected(
      counted(METRICS.runTransitions, { status: 'running' }),
      counted(METRICS.sessionTransitions, { state: 'executing' }),
      measured(METRICS.stepDuration, 0.5, { connector: 'github', environment: 'prod' }),
      measured(METRICS.stepDuration, 0.7, { connector: 'github', environment: 'prod' }),
      counted(METRICS.runTransitions, { status: 'succeeded' }),
      counted(METRICS.approvalsOverdue, {}),
    );
    expect(lines).toHaveLength(2);
    const shown = totals.map(({ name, dimensions, count, sum }) => ({ name, dimensions, count, sum }));
    expect(shown).toHaveLength(5);
    expect(shown).toEqual(
      expect.arrayContaining([
        { name: 'gwi_run_transitions_total', dimensions: { status: 'running' }, count: 1, sum: 1 },
        { name: 'session_state_transitions_total', dimensions: { state: 'executing' }, count: 1, sum: 1 },
        {
          name: 'execution_step_duration_seconds',
          dimensions: { connector: 'github', environment: 'prod' },
          count: 2,
          sum: 1.2,
        },
        { name: 'gwi_run_transitions_total', dimensions: { status: 'succeeded' }, count: 1, sum: 1 },
        { name: 'ApprovalsOverdue', dimensions: {}, count: 1, sum: 1 },
      ]),
    );
  });

  it('keep within the limits of the format: 100 values of a metric in a line, 100 metrics in a directive', () => {
    const many = Array.from({ length: 250 }, () => counted(METRICS.retries, { connector: 'github' }));
    const { lines, totals } = collected(...many);
    expect(lines.map(({ step_retries_total: values }) => [values].flat().length)).toEqual([100, 100, 50]);
    expect(totals[0]?.sum).toBe(250);
    expect(ALL.length).toBeLessThan(100);
  });

  it('have the value `other` for a dimension value that is not listed', () => {
    const { totals } = collected(measured(METRICS.credentialFetch, 1, { source: 'tenant-7' as 'vault' }));
    expect(totals[0]?.dimensions).toEqual({ source: OTHER });
  });
});

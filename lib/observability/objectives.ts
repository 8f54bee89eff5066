import { Duration } from 'aws-cdk-lib';
import { type IMetric, MathExpression, Metric } from 'aws-cdk-lib/aws-cloudwatch';
import { METRICS, type MetricDefinition, metricNamespace } from '../../lambdas/telemetry/metrics.ts';
import type { StageConfig } from '../stage-config.ts';

/** An objective: the share of events that must be good, over 30 days. */
export interface Objective {
  /** Of alarms. */
  id: string;
  title: string;
  /** 0.999: at most one of a thousand is bad. */
  target: number;
  /** The share of bad events in each period, 0 to 1. */
  badShare(period: Duration): IMetric;
}

/** A window with fewer events says nothing: one bad event would be a large share of them. */
const EVENTS_MIN = 10;
/** What the objective for decisions says. */
const DECISION_TO_STEP_SECONDS = 2;

/** The objectives of a stage. docs/observability.md explains them. */
export function objectivesOf({ stage }: StageConfig): Objective[] {
  const metric = ({ name }: MetricDefinition, statistic: string, period: Duration, dimensionsMap = {}) =>
    new Metric({ namespace: metricNamespace(stage), metricName: name, statistic, period, dimensionsMap });
  const statuses =
    (id: string, definition: MetricDefinition, statistic: string, good: string[], bad: string[]) =>
    (period: Duration) =>
      badShare(
        Object.fromEntries(
          good.map((status, at) => [`${id}Good${at}`, metric(definition, statistic, period, { status })]),
        ),
        Object.fromEntries(
          bad.map((status, at) => [`${id}Bad${at}`, metric(definition, statistic, period, { status })]),
        ),
        period,
      );
  return [
    {
      id: 'Ingest',
      title: 'Webhooks are accepted',
      target: 0.999,
      // What a sender did wrong (a signature, a conflict) is not our error.
      badShare: statuses('ingest', METRICS.deliveries, 'Sum', ['started', 'ignored', 'duplicate'], ['failed']),
    },
    {
      id: 'Decision',
      title: `A step starts within ${DECISION_TO_STEP_SECONDS} s of its decision`,
      target: 0.99,
      badShare: (period) =>
        new MathExpression({
          expression: `IF(FILL(decisions, 0) >= ${EVENTS_MIN}, (100 - inTime) / 100, 0)`,
          usingMetrics: {
            decisions: metric(METRICS.decisionToStep, 'SampleCount', period),
            inTime: metric(METRICS.decisionToStep, `PR(:${DECISION_TO_STEP_SECONDS})`, period),
          },
          period,
        }),
    },
    {
      id: 'Completion',
      title: 'Runs end without failing',
      target: 0.99,
      badShare: statuses(
        'run',
        METRICS.runDuration,
        'SampleCount',
        ['succeeded', 'canceled'],
        ['failed_terminal', 'needs_human', 'timed_out'],
      ),
    },
  ];
}

/** A status without events in a period has no value, so it counts as 0. */
function badShare(good: Record<string, IMetric>, bad: Record<string, IMetric>, period: Duration): IMetric {
  const sum = (metrics: Record<string, IMetric>) =>
    Object.keys(metrics)
      .map((id) => `FILL(${id}, 0)`)
      .join(' + ');
  const all = `(${sum({ ...good, ...bad })})`;
  const expression = `IF(${all} >= ${EVENTS_MIN}, (${sum(bad)}) / ${all}, 0)`;
  return new MathExpression({ expression, usingMetrics: { ...good, ...bad }, period });
}

/** How fast the budget of bad events is used up, in multiples of the rate that uses it up in exactly 30 days. */
export interface BurnRate {
  id: 'Fast' | 'Slow';
  factor: number;
  /** Both windows must show it: the long one that it matters, the short one that it still happens. */
  windows: readonly [long: Duration, short: Duration];
}

/** 2% of the budget in an hour; 5% in 6 hours. The figures of the SRE workbook of Google, chapter 5. */
export const BURN_RATES: readonly BurnRate[] = [
  { id: 'Fast', factor: 14.4, windows: [Duration.hours(1), Duration.minutes(5)] },
  { id: 'Slow', factor: 6, windows: [Duration.hours(6), Duration.minutes(30)] },
];

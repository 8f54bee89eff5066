import type { ResolvedResource } from '../../template/template.ts';
import { mathValue } from './metric-math.ts';
import { type MetricStore, MINUTE_MS, type Series } from './metric-store.ts';

type Fields = Record<string, unknown>;

export type AlarmState = 'OK' | 'ALARM';

export interface AlarmDefinition {
  name: string;
  arn: string;
  logicalId: string;
  description: string;
  /** ARNs of topics that learn of each change. */
  actions: string[];
  okActions: string[];
  stateAt(atMs: number, context: EvaluationContext): AlarmState;
}

export interface EvaluationContext {
  metrics: MetricStore;
  /** Before this time there are no values, so missing values mean nothing. */
  startedMs: number;
  stateOf(alarmArn: string): AlarmState | undefined;
}

const COMPARISONS: Record<string, (value: number, threshold: number) => boolean> = {
  GreaterThanOrEqualToThreshold: (value, threshold) => value >= threshold,
  LessThanThreshold: (value, threshold) => value < threshold,
};

export function metricAlarm(resource: ResolvedResource): AlarmDefinition {
  const { properties } = resource;
  const threshold = Number(properties.Threshold);
  const breaches = COMPARISONS[String(properties.ComparisonOperator)];
  if (!breaches) throw new Error(`${resource.logicalId}: the local host does not support its ComparisonOperator`);
  const { periodMs, valueAt } = watched(resource);
  const periods = Number(properties.EvaluationPeriods);
  const needed = Number(properties.DatapointsToAlarm ?? periods);
  const missing = String(properties.TreatMissingData ?? 'missing');
  if (!['notBreaching', 'breaching'].includes(missing)) {
    throw new Error(`${resource.logicalId}: the local host does not support TreatMissingData ${missing}`);
  }
  return {
    ...common(resource),
    stateAt(atMs, { metrics, startedMs }) {
      const breaching = Array.from({ length: periods }, (_, index) => atMs - index * periodMs).filter((toMs) => {
        const value = valueAt(metrics, toMs - periodMs, toMs);
        if (value !== undefined) return breaches(value, threshold);
        return missing === 'breaching' && toMs - periodMs >= startedMs;
      });
      return breaching.length >= needed ? 'ALARM' : 'OK';
    },
  };
}

const ALL_OF = /^\(?(ALARM\("[^"]+"\)(?: AND ALARM\("[^"]+"\))*)\)?$/;

/** An alarm that starts when all of these alarms have started. */
export function compositeAlarm(resource: ResolvedResource): AlarmDefinition {
  const rule = String(resource.properties.AlarmRule);
  const [, all] = ALL_OF.exec(rule) ?? [];
  if (!all) throw new Error(`${resource.logicalId}: the local host does not support the AlarmRule ${rule}`);
  const arns = [...all.matchAll(/ALARM\("([^"]+)"\)/g)].map(([, arn]) => arn ?? '');
  return {
    ...common(resource),
    stateAt: (_atMs, { stateOf }) => (arns.every((arn) => stateOf(arn) === 'ALARM') ? 'ALARM' : 'OK'),
  };
}

function common({ ref, arn, logicalId, properties }: ResolvedResource) {
  return {
    name: ref,
    arn,
    logicalId,
    description: String(properties.AlarmDescription ?? ''),
    actions: ((properties.AlarmActions ?? []) as unknown[]).map(String),
    okActions: ((properties.OKActions ?? []) as unknown[]).map(String),
  };
}

interface Watched {
  periodMs: number;
  valueAt(metrics: MetricStore, fromMs: number, toMs: number): number | undefined;
}

function watched({ logicalId, properties }: ResolvedResource): Watched {
  if (!properties.Metrics) {
    const series = seriesOf(properties);
    const statistic = String(properties.ExtendedStatistic ?? properties.Statistic);
    return {
      periodMs: Number(properties.Period) * 1000,
      valueAt: (metrics, fromMs, toMs) => metrics.statistic(series, statistic, fromMs, toMs),
    };
  }
  const queries = properties.Metrics as Fields[];
  const expression = queries.find(({ Expression }) => Expression !== undefined);
  const stats = queries.flatMap(({ Id, MetricStat }) => {
    if (!MetricStat) return [];
    const { Metric, Period, Stat } = MetricStat as { Metric: Fields; Period: number; Stat: string };
    return [{ id: String(Id), series: seriesOf(Metric), periodMs: Number(Period) * 1000, statistic: Stat }];
  });
  const [first] = stats;
  if (
    !first ||
    !expression ||
    stats.length !== queries.length - 1 ||
    stats.some((s) => s.periodMs !== first.periodMs)
  ) {
    throw new Error(`${logicalId}: the local host supports one expression over metrics with one period`);
  }
  return {
    periodMs: first.periodMs,
    valueAt: (metrics, fromMs, toMs) => {
      const values = stats.map(({ id, series, statistic }) => [id, metrics.statistic(series, statistic, fromMs, toMs)]);
      return mathValue(String(expression.Expression), Object.fromEntries(values));
    },
  };
}

export function seriesOf({ Namespace, MetricName, Dimensions }: Fields): Series {
  const dimensions = ((Dimensions ?? []) as { Name: string; Value: unknown }[]).map(({ Name, Value }) => [
    Name,
    String(Value),
  ]);
  return { namespace: String(Namespace), name: String(MetricName), dimensions: Object.fromEntries(dimensions) };
}

/** Alarms are evaluated once a minute. */
export const EVALUATED_EVERY_MS = MINUTE_MS;

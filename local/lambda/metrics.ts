import { embeddedMetrics, type LogLine } from '../cloud/cloudwatch/log-line.ts';

/** The total of a metric since the start, per function and set of dimensions. */
export interface MetricTotal {
  function: string;
  namespace: string;
  name: string;
  unit: string;
  dimensions: Record<string, string>;
  count: number;
  sum: number;
  min: number;
  max: number;
}

/** Collects the metrics that functions log in CloudWatch's embedded metric format. */
export class Metrics {
  readonly #totals = new Map<string, MetricTotal>();

  /** Reads a log line. Lines without embedded metrics are ignored. */
  collect(functionLogicalId: string, line: LogLine): void {
    for (const { namespace, name, unit, dimensions, values } of embeddedMetrics(line)) {
      const key = JSON.stringify([functionLogicalId, namespace, name, dimensions]);
      const identity = { function: functionLogicalId, namespace, name, unit, dimensions };
      const total = this.#totals.get(key) ?? { ...identity, count: 0, sum: 0, min: Infinity, max: -Infinity };
      for (const value of values) addValue(total, value);
      if (total.count > 0) this.#totals.set(key, total);
    }
  }

  list(): MetricTotal[] {
    return structuredClone([...this.#totals.values()]);
  }
}

function addValue(total: MetricTotal, value: number): void {
  if (!Number.isFinite(value)) return;
  total.count += 1;
  total.sum += value;
  total.min = Math.min(total.min, value);
  total.max = Math.max(total.max, value);
}

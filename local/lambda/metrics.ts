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

interface EmbeddedMetrics {
  Namespace: string;
  Dimensions?: string[][];
  Metrics?: { Name: string; Unit?: string }[];
}

/** Collects the metrics that functions log in CloudWatch's embedded metric format. */
export class Metrics {
  readonly #totals = new Map<string, MetricTotal>();

  /** Reads a log line. Lines without embedded metrics are ignored. */
  collect(functionLogicalId: string, line: string): void {
    if (!line.startsWith('{') || !line.includes('"CloudWatchMetrics"')) return;
    const record = parseObject(line);
    const directives = (record?._aws as { CloudWatchMetrics?: EmbeddedMetrics[] } | undefined)?.CloudWatchMetrics;
    for (const directive of directives ?? []) this.#add(functionLogicalId, directive, record ?? {});
  }

  list(): MetricTotal[] {
    return structuredClone([...this.#totals.values()]);
  }

  #add(functionLogicalId: string, directive: EmbeddedMetrics, record: Record<string, unknown>): void {
    for (const dimensionSet of directive.Dimensions?.length ? directive.Dimensions : [[]]) {
      const dimensions = Object.fromEntries(dimensionSet.map((name) => [name, String(record[name])]));
      for (const { Name: name, Unit: unit = 'None' } of directive.Metrics ?? []) {
        const key = JSON.stringify([functionLogicalId, directive.Namespace, name, dimensions]);
        const identity = { function: functionLogicalId, namespace: directive.Namespace, name, unit, dimensions };
        const total = this.#totals.get(key) ?? { ...identity, count: 0, sum: 0, min: Infinity, max: -Infinity };
        for (const value of [record[name] ?? []].flat().map(Number)) addValue(total, value);
        if (total.count > 0) this.#totals.set(key, total);
      }
    }
  }
}

function addValue(total: MetricTotal, value: number): void {
  if (!Number.isFinite(value)) return;
  total.count += 1;
  total.sum += value;
  total.min = Math.min(total.min, value);
  total.max = Math.max(total.max, value);
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

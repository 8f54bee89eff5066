/** A line of a structured log. */
export type LogLine = Readonly<Record<string, unknown>>;

interface EmbeddedMetric {
  namespace: string;
  name: string;
  unit: string;
  dimensions: Record<string, string>;
  values: number[];
}

interface Directive {
  Namespace: string;
  Dimensions?: string[][];
  Metrics?: { Name: string; Unit?: string }[];
}

/** Undefined if the text is not a JSON object. */
export function parseLogLine(text: string): LogLine | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return undefined;
  }
}

/** The metrics that a line contains in CloudWatch's embedded metric format, once for each set of dimensions. */
export function embeddedMetrics(line: LogLine): EmbeddedMetric[] {
  const { CloudWatchMetrics: directives } = (line._aws ?? {}) as { CloudWatchMetrics?: Directive[] };
  const metrics: EmbeddedMetric[] = [];
  for (const { Namespace: namespace, Dimensions = [], Metrics = [] } of directives ?? []) {
    for (const dimensionSet of Dimensions.length > 0 ? Dimensions : [[]]) {
      const dimensions: Record<string, string> = {};
      for (const dimension of dimensionSet) dimensions[dimension] = String(line[dimension]);
      for (const { Name: name, Unit: unit = 'None' } of Metrics) {
        const values = [line[name] ?? []].flat().map(Number);
        metrics.push({ namespace, name, unit, dimensions, values });
      }
    }
  }
  return metrics;
}

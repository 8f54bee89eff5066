import { type Measurement, metricNamespace } from './metrics.ts';

interface Directive {
  Namespace: string;
  Dimensions: string[][];
  Metrics: { Name: string; Unit: string }[];
}

/** CloudWatch reads at most this many values of a metric from one line. */
const VALUES_MAX = 100;

/** The members of a log line from which CloudWatch makes metrics. Dimensions and values are members of the line. */
export type EmbeddedLine = Record<string, unknown> & {
  _aws?: { Timestamp: number; CloudWatchMetrics: Directive[] };
};

/**
 * CloudWatch's embedded metric format: CloudWatch makes metrics of a log line, without a request. As few lines as possible,
 * because each byte is billed: all measurements share a line if their dimensions do not contradict each other or `fields`.
 * `fields` are members of the first line.
 */
export function embedded(
  { stage, now }: { stage: string; now: number },
  measurements: readonly Measurement[],
  fields: Readonly<Record<string, unknown>> = {},
): EmbeddedLine[] {
  const lines: EmbeddedLine[] = Object.keys(fields).length > 0 ? [{ ...fields }] : [];
  for (const measurement of measurements) {
    let line = lines.find((each) => fits(each, measurement));
    if (!line) {
      line = {};
      lines.push(line);
    }
    add(line, measurement, metricNamespace(stage), now);
  }
  return lines;
}

function fits(line: EmbeddedLine, { metric: { name }, dimensions }: Measurement): boolean {
  const agrees = Object.entries(dimensions).every(([dimension, value]) => (line[dimension] ?? value) === value);
  if (!agrees) return false;
  const values = line[name];
  if (values === undefined) return true;
  // The line already has this metric: with the same dimensions, which it has, too.
  return [values].flat().length < VALUES_MAX && Object.keys(dimensions).every((each) => each in line);
}

function add(line: EmbeddedLine, { metric, value, dimensions }: Measurement, namespace: string, now: number): void {
  const { name, unit } = metric;
  line._aws ??= { Timestamp: now, CloudWatchMetrics: [] };
  const names = Object.keys(dimensions);
  if (name in line) {
    line[name] = [line[name] as number | number[], value].flat();
    return;
  }
  Object.assign(line, dimensions, { [name]: value });
  const directives = line._aws.CloudWatchMetrics;
  let directive = directives.find(({ Dimensions: [each = []] }) => each.join() === names.join());
  if (!directive) {
    directive = { Namespace: namespace, Dimensions: [names], Metrics: [] };
    directives.push(directive);
  }
  directive.Metrics.push({ Name: name, Unit: unit });
}

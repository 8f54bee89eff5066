import type { Clock } from '../entry/ports.ts';
import { type Measurement, type Metrics, metricNamespace } from './metrics.ts';

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
  return Array.isArray(values) && values.length < VALUES_MAX && Object.keys(dimensions).every((each) => each in line);
}

function add(line: EmbeddedLine, { metric, value, dimensions }: Measurement, namespace: string, now: number): void {
  const { name, unit } = metric;
  line._aws ??= { Timestamp: now, CloudWatchMetrics: [] };
  const names = Object.keys(dimensions);
  if (name in line) {
    (line[name] as number[]).push(value);
    return;
  }
  Object.assign(line, dimensions, { [name]: [value] });
  const directives = line._aws.CloudWatchMetrics;
  let directive = directives.find(({ Dimensions: [each = []] }) => each.join() === names.join());
  if (!directive) {
    directive = { Namespace: namespace, Dimensions: [names], Metrics: [] };
    directives.push(directive);
  }
  directive.Metrics.push({ Name: name, Unit: unit });
}

/** Writes measurements that belong to no other log line. */
export class EmbeddedMetrics implements Metrics {
  readonly #stage: string;
  readonly #clock: Clock;
  readonly #write: (line: string) => void;

  constructor(stage: string, clock: Clock, write: (line: string) => void) {
    this.#stage = stage;
    this.#clock = clock;
    this.#write = write;
  }

  record(...measurements: readonly Measurement[]): void {
    for (const line of embedded({ stage: this.#stage, now: this.#clock.now() }, measurements)) {
      this.#write(`${JSON.stringify(line)}\n`);
    }
  }
}

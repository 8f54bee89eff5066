import type { Clock } from './ports.ts';

/** Metrics that functions log, under the names by which the dashboard and the alarms find them. */
export const METRICS = {
  /** One for each run whose evidence was sealed, by the status in which the run ended. */
  runsFinished: 'RunsFinished',
  /** Approvals that nobody has decided yet. */
  approvalsWaiting: 'ApprovalsWaiting',
  /** One for each approval that passed its SLA without a decision. */
  approvalsOverdue: 'ApprovalsOverdue',
  /** How long ago the oldest row became due that the sweeper found. */
  oldestDueSeconds: 'OldestDueSeconds',
} as const;
export type MetricName = (typeof METRICS)[keyof typeof METRICS];

/** One value of a metric; each combination of dimensions is billed as a metric of its own, so there are few. */
export interface Measurement {
  name: MetricName;
  value: number;
  unit: 'Count' | 'Seconds';
  dimensions?: Record<string, string>;
}

export interface Metrics {
  record(measurement: Measurement): void;
}

/** Metrics of stages in one account are kept apart, or one stage would raise the alarms of another. */
export const metricNamespace = (stage: string) => `Countersign/${stage}`;

/** CloudWatch's embedded metric format: a line in the log becomes a metric, without a request of ours. */
export class EmbeddedMetrics implements Metrics {
  readonly #namespace: string;
  readonly #clock: Clock;
  readonly #write: (line: string) => void;

  constructor(stage: string, clock: Clock, write: (line: string) => void) {
    this.#namespace = metricNamespace(stage);
    this.#clock = clock;
    this.#write = write;
  }

  record({ name, value, unit, dimensions = {} }: Measurement): void {
    const directive = {
      Namespace: this.#namespace,
      Dimensions: [Object.keys(dimensions)],
      Metrics: [{ Name: name, Unit: unit }],
    };
    const _aws = { Timestamp: this.#clock.now(), CloudWatchMetrics: [directive] };
    this.#write(`${JSON.stringify({ _aws, ...dimensions, [name]: value })}\n`);
  }
}

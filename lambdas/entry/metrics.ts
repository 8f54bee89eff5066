import type { Clock } from './ports.ts';

/** Names of the metrics that functions log, shared with the dashboard and the alarms. */
export const METRICS = {
  /** One for each run whose evidence was sealed, by the run's final status. */
  runsFinished: 'RunsFinished',
  /** Approvals without a decision. */
  approvalsWaiting: 'ApprovalsWaiting',
  /** One for each approval that passed its SLA without a decision. */
  approvalsOverdue: 'ApprovalsOverdue',
  /** Age of the oldest due row that the sweeper found. */
  oldestDueSeconds: 'OldestDueSeconds',
  /** One for each assignment to an agent that changed its status (source 001, 6.1). */
  workerAssignments: 'worker_assignments_total',
  /** One for each time an agent stopped or refused a command because of its profile (source 001, 6.1). */
  profileViolations: 'sandbox_policy_violations_total',
  /** How long an agent waited for a credential, by its source (source 001, 6.1). */
  credentialFetch: 'credential_fetch_duration_seconds',
} as const;
export type MetricName = (typeof METRICS)[keyof typeof METRICS];

/** One value of a metric. AWS bills each combination of dimensions as a metric, so there are few. */
export interface Measurement {
  name: MetricName;
  value: number;
  unit: 'Count' | 'Seconds';
  dimensions?: Record<string, string>;
}

export interface Metrics {
  record(measurement: Measurement): void;
}

/** One namespace per stage, so that a stage does not raise the alarms of another one in the same account. */
export const metricNamespace = (stage: string) => `Countersign/${stage}`;

/** CloudWatch's embedded metric format: CloudWatch makes a metric of a log line, without a request. */
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

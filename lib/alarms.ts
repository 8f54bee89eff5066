import { Duration } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, type IMetric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { FilterPattern, MetricFilter } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import type { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';
import type { WorkQueue } from './work-queue.ts';

/** Many times as long as anything that runs by the clock may take between two runs. */
const SILENT_FOR = Duration.minutes(15);

/** What a person must hear of. Each alarm says under which heading of the RUNBOOK to read on. */
export class Alarms extends Construct {
  /** Metrics of stages in one account are kept apart, or one would ring for the other. */
  readonly #namespace: string;

  constructor(scope: Construct, id: string, { stage }: StageConfig) {
    super(scope, id);
    this.#namespace = `Countersign/${stage}`;
  }

  deadLetters(id: string, { deadLetters }: WorkQueue): void {
    this.#whenAny(id, deadLetters.metricApproximateNumberOfMessagesVisible(), 'Messages in a dead-letter queue');
  }

  /** A function that nobody waits for, and that must not fail unheard. */
  failing(id: string, failing: NodeFunction, runbookHeading: string): void {
    this.#whenAny(id, failing.metricErrors(), runbookHeading);
  }

  /** A function that the clock calls, and that was not called. */
  silent(id: string, silent: NodeFunction, runbookHeading: string): void {
    new Alarm(this, id, {
      metric: silent.metricInvocations({ period: SILENT_FOR, statistic: 'sum' }),
      threshold: 1,
      comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
      evaluationPeriods: 1,
      treatMissingData: TreatMissingData.BREACHING,
      alarmDescription: `RUNBOOK.md: ${runbookHeading}`,
    });
  }

  /** A function's log line with this error code. */
  logged(id: string, from: NodeFunction, code: string, runbookHeading: string): void {
    this.#whenLogged(id, from, { field: '$.error.name', is: code }, runbookHeading);
  }

  /** A function's log line that says this. */
  said(id: string, from: NodeFunction, sentence: string, runbookHeading: string): void {
    this.#whenLogged(id, from, { field: '$.message', is: sentence }, runbookHeading);
  }

  #whenLogged(id: string, from: NodeFunction, line: { field: string; is: string }, runbookHeading: string): void {
    const filter = new MetricFilter(this, `${id}Filter`, {
      logGroup: from.logGroup,
      filterPattern: FilterPattern.stringValue(line.field, '=', line.is),
      metricNamespace: this.#namespace,
      metricName: id,
    });
    this.#whenAny(id, filter.metric({ statistic: 'sum' }), runbookHeading);
  }

  #whenAny(id: string, metric: IMetric, runbookHeading: string): void {
    new Alarm(this, id, {
      metric,
      threshold: 1,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: 1,
      treatMissingData: TreatMissingData.NOT_BREACHING,
      alarmDescription: `RUNBOOK.md: ${runbookHeading}`,
    });
  }
}

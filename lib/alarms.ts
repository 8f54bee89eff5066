import { Aws, CfnOutput, Duration, Stack } from 'aws-cdk-lib';
import type { HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import {
  Alarm,
  type AlarmProps,
  ComparisonOperator,
  type IMetric,
  Metric,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { FilterPattern, MetricFilter } from 'aws-cdk-lib/aws-logs';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import { type MetricName, metricNamespace } from '../lambdas/entry/metrics.ts';
import type { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';
import type { WorkQueue } from './work-queue.ts';

/** Many times as long as anything that runs by the clock may take between two runs. */
const SILENT_FOR = Duration.minutes(15);
/**
 * A message that is there for so long waits for a consumer that is down, throttled or too slow. Longer than the 15 minutes
 * by which a message may be delayed, and than a message that fails five times needs to become a dead letter.
 */
const MESSAGE_AGE_MAX = Duration.minutes(20);

/** What a person must hear of. Each alarm says under which heading of the RUNBOOK to read on. */
export class Alarms extends Construct {
  readonly all: Alarm[] = [];
  readonly #namespace: string;
  readonly #topic: ITopic;

  constructor(scope: Construct, id: string, config: StageConfig) {
    super(scope, id);
    this.#namespace = metricNamespace(config.stage);
    this.#topic = this.#alarmTopic(config);
    new CfnOutput(Stack.of(this), 'AlarmTopicArn', { value: this.#topic.topicArn });
  }

  deadLetters(id: string, { deadLetters }: WorkQueue): void {
    this.#whenAny(id, deadLetters.metricApproximateNumberOfMessagesVisible(), 'Messages in a dead-letter queue');
  }

  /** Messages that wait although their consumer should take them at once. */
  waiting(id: string, { queue }: WorkQueue): void {
    this.#alarm(id, 'Messages wait in a queue', {
      metric: queue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(1) }),
      threshold: MESSAGE_AGE_MAX.toSeconds(),
      evaluationPeriods: 3,
    });
  }

  /** The HTTP API answered with a server error: a webhook may be lost, and GitHub does not send it again. */
  serverErrors(id: string, api: HttpApi): void {
    this.#whenAny(id, api.metricServerError(), 'The API answers with 5xx');
  }

  /**
   * Lambda refused to run one of these: its reservation or the account's concurrency is used up. An alarm for each: a sum
   * has no value in periods in which one of the functions was not called, and would never raise an alarm.
   */
  throttled(functions: Record<string, NodeFunction>, runbookHeading: string): void {
    for (const [name, each] of Object.entries(functions)) {
      this.#whenAny(`${name}Throttled`, each.metricThrottles(), runbookHeading);
    }
  }

  /** A metric of ours that must stay below a bound. */
  above(id: string, bound: number, metricName: MetricName, runbookHeading: string): void {
    const metric = new Metric({
      namespace: this.#namespace,
      metricName,
      statistic: 'max',
      period: Duration.minutes(1),
    });
    this.#alarm(id, runbookHeading, { metric, threshold: bound, evaluationPeriods: 3 });
  }

  /** A function that nobody waits for, and that must not fail unheard. */
  failing(id: string, failing: NodeFunction, runbookHeading: string): void {
    this.#whenAny(id, failing.metricErrors(), runbookHeading);
  }

  /** A function that the clock calls, and that was not called. */
  silent(id: string, silent: NodeFunction, runbookHeading: string): void {
    this.#alarm(id, runbookHeading, {
      metric: silent.metricInvocations({ period: SILENT_FOR, statistic: 'sum' }),
      threshold: 1,
      comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
      evaluationPeriods: 1,
      treatMissingData: TreatMissingData.BREACHING,
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
    this.#alarm(id, runbookHeading, { metric, threshold: 1, evaluationPeriods: 1 });
  }

  #alarm(id: string, runbookHeading: string, props: Omit<AlarmProps, 'alarmDescription'>): void {
    const alarm = new Alarm(this, id, {
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: TreatMissingData.NOT_BREACHING,
      ...props,
      alarmDescription: `RUNBOOK.md: ${runbookHeading}`,
    });
    alarm.addAlarmAction(new SnsAction(this.#topic));
    alarm.addOkAction(new SnsAction(this.#topic));
    this.all.push(alarm);
  }

  #alarmTopic({ stage, alarmEmails, alarmTopicArn }: StageConfig): ITopic {
    if (alarmTopicArn) return Topic.fromTopicArn(this, 'Topic', alarmTopicArn);
    const topic = new Topic(this, 'Topic', { displayName: `Countersign ${stage}`, enforceSSL: true });
    // A topic with a policy of its own has lost the one by which alarms of the account may publish to it.
    topic.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': Aws.ACCOUNT_ID } },
      }),
    );
    for (const email of alarmEmails) topic.addSubscription(new EmailSubscription(email));
    return topic;
  }
}

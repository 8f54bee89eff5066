import { Aws, CfnOutput, Duration, Stack } from 'aws-cdk-lib';
import type { HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import {
  Alarm,
  type AlarmBase,
  type AlarmProps,
  AlarmRule,
  AlarmState,
  ComparisonOperator,
  CompositeAlarm,
  type IMetric,
  Metric,
  TreatMissingData,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { FilterPattern, MetricFilter } from 'aws-cdk-lib/aws-logs';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription, UrlSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { type MetricDefinition, metricNamespace } from '../../lambdas/telemetry/metrics.ts';
import type { NodeFunction } from '../node-function.ts';
import type { StageConfig } from '../stage-config.ts';
import type { WorkQueue } from '../work-queue.ts';
import { BURN_RATES, type Objective } from './objectives.ts';

/** A few times the interval between two invocations. Less than the SLA of prod: without the sweeper, nobody is reminded of an approval. */
const SILENT_FOR = Duration.minutes(5);
/**
 * The consumer of an older message is down, throttled or too slow. Longer than the maximum delay of a message (15 minutes),
 * and than five failed deliveries take.
 */
const MESSAGE_AGE_MAX = Duration.minutes(20);

const OBJECTIVE_AT_RISK = 'An objective is at risk';

/** The alarms of the stage. The description of each links a heading of the RUNBOOK. */
export class Alarms extends Construct {
  /** Those that notify. */
  readonly all: AlarmBase[] = [];
  readonly #namespace: string;
  readonly #runbookUrl: string;
  readonly #topic: ITopic;

  constructor(scope: Construct, id: string, config: StageConfig) {
    super(scope, id);
    this.#namespace = metricNamespace(config.stage);
    this.#runbookUrl = config.runbookUrl;
    this.#topic = this.#alarmTopic(config);
    new CfnOutput(Stack.of(this), 'AlarmTopicArn', { value: this.#topic.topicArn });
  }

  deadLetters(id: string, { deadLetters }: WorkQueue): void {
    this.messagesIn(id, deadLetters, 'Messages in a dead-letter queue');
  }

  messagesIn(id: string, queue: Queue, runbookHeading: string): void {
    this.#whenAny(id, queue.metricApproximateNumberOfMessagesVisible(), runbookHeading);
  }

  /** Messages that their consumer should have received long ago. */
  waiting(id: string, { queue }: WorkQueue): void {
    this.#alarm(id, 'Messages wait in a queue', {
      metric: queue.metricApproximateAgeOfOldestMessage({ period: Duration.minutes(1) }),
      threshold: MESSAGE_AGE_MAX.toSeconds(),
      evaluationPeriods: 3,
    });
  }

  /** The HTTP API returned a server error: a webhook may be lost, because GitHub does not send it again. */
  serverErrors(id: string, api: HttpApi): void {
    this.#whenAny(id, api.metricServerError(), 'The API responds with 5xx');
  }

  /**
   * Lambda throttled a function: its reserved concurrency or the account's quota is used up. One alarm for each function,
   * because a sum has no value in periods in which one of the functions was not invoked.
   */
  throttled(functions: Record<string, NodeFunction>, runbookHeading: string): void {
    for (const [name, each] of Object.entries(functions)) {
      this.#whenAny(`${name}Throttled`, each.metricThrottles(), runbookHeading);
    }
  }

  /** One of our own metrics reached its bound. */
  above(id: string, bound: number, { name: metricName }: MetricDefinition, runbookHeading: string): void {
    const metric = new Metric({
      namespace: this.#namespace,
      metricName,
      statistic: 'max',
      period: Duration.minutes(1),
    });
    this.#alarm(id, runbookHeading, { metric, threshold: bound, evaluationPeriods: 3 });
  }

  /** One of our own metrics counted something. */
  any(id: string, { name: metricName }: MetricDefinition, runbookHeading: string): void {
    const metric = new Metric({
      namespace: this.#namespace,
      metricName,
      statistic: 'sum',
      period: Duration.minutes(5),
    });
    this.#whenAny(id, metric, runbookHeading);
  }

  /** A function failed that no caller waits for. */
  failing(id: string, failing: NodeFunction, runbookHeading: string): void {
    this.#whenAny(id, failing.metricErrors(), runbookHeading);
  }

  /**
   * The objective will be missed if this continues. The two windows have alarms without an action, and one alarm combines
   * them: each alone would notify too late that it is over, or of a single failure.
   */
  burning(objective: Objective): void {
    for (const { id: speed, factor, windows } of BURN_RATES) {
      const alarms = windows.map((window) => {
        const id = `${objective.id}${speed}${window.toMinutes()}m`;
        return this.#newAlarm(id, OBJECTIVE_AT_RISK, {
          metric: objective.badShare(window),
          threshold: factor * (1 - objective.target),
          evaluationPeriods: 1,
        });
      });
      const combined = new CompositeAlarm(this, `${objective.id}Burns${speed}`, {
        // CDK would give it the same name in every stage.
        compositeAlarmName: `${Stack.of(this).stackName}-${objective.id}Burns${speed}`,
        alarmRule: AlarmRule.allOf(...alarms.map((alarm) => AlarmRule.fromAlarm(alarm, AlarmState.ALARM))),
        alarmDescription: `${this.#runbookLink(OBJECTIVE_AT_RISK)} (${objective.title})`,
      });
      this.#notify(combined);
    }
  }

  /** A scheduled function was not invoked. */
  silent(id: string, silent: NodeFunction, runbookHeading: string): void {
    this.#alarm(id, runbookHeading, {
      metric: silent.metricInvocations({ period: SILENT_FOR, statistic: 'sum' }),
      threshold: 1,
      comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
      evaluationPeriods: 1,
      treatMissingData: TreatMissingData.BREACHING,
    });
  }

  /** A function logged an error with this code. */
  loggedError(id: string, from: NodeFunction, code: string, runbookHeading: string): void {
    this.#whenLogged(id, { '': from }, { field: '$.error.name', is: code }, runbookHeading);
  }

  /** A function logged this message. */
  loggedMessage(id: string, from: NodeFunction, message: string, runbookHeading: string): void {
    this.#whenLogged(id, { '': from }, { field: '$.message', is: message }, runbookHeading);
  }

  /** One of these functions did: they share one metric and one alarm. The log line says which one. */
  anyLoggedError(id: string, from: Record<string, NodeFunction>, code: string, runbookHeading: string): void {
    this.#whenLogged(id, from, { field: '$.error.name', is: code }, runbookHeading);
  }

  anyLoggedMessage(id: string, from: Record<string, NodeFunction>, message: string, runbookHeading: string): void {
    this.#whenLogged(id, from, { field: '$.message', is: message }, runbookHeading);
  }

  #whenLogged(
    id: string,
    from: Record<string, NodeFunction>,
    line: { field: string; is: string },
    runbookHeading: string,
  ): void {
    const filters = Object.entries(from).map(
      ([name, { logGroup }]) =>
        new MetricFilter(this, `${name}${id}Filter`, {
          logGroup,
          filterPattern: FilterPattern.stringValue(line.field, '=', line.is),
          metricNamespace: this.#namespace,
          metricName: id,
        }),
    );
    const [first] = filters;
    if (first) this.#whenAny(id, first.metric({ statistic: 'sum' }), runbookHeading);
  }

  #whenAny(id: string, metric: IMetric, runbookHeading: string): void {
    this.#alarm(id, runbookHeading, { metric, threshold: 1, evaluationPeriods: 1 });
  }

  #alarm(id: string, runbookHeading: string, props: Omit<AlarmProps, 'alarmDescription'>): void {
    this.#notify(this.#newAlarm(id, runbookHeading, props));
  }

  #newAlarm(id: string, runbookHeading: string, props: Omit<AlarmProps, 'alarmDescription'>): Alarm {
    return new Alarm(this, id, {
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: TreatMissingData.NOT_BREACHING,
      ...props,
      alarmDescription: this.#runbookLink(runbookHeading),
    });
  }

  #notify(alarm: AlarmBase): void {
    alarm.addAlarmAction(new SnsAction(this.#topic));
    alarm.addOkAction(new SnsAction(this.#topic));
    this.all.push(alarm);
  }

  /** `RUNBOOK.md#functions-are-throttled: Functions are throttled` */
  #runbookLink(heading: string): string {
    const anchor = heading
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-');
    return `${this.#runbookUrl}#${anchor}: ${heading}`;
  }

  #alarmTopic({ stage, alarmEmails, alarmUrls, alarmTopicArn }: StageConfig): ITopic {
    if (alarmTopicArn) return Topic.fromTopicArn(this, 'Topic', alarmTopicArn);
    const topic = new Topic(this, 'Topic', { displayName: `Countersign ${stage}`, enforceSSL: true });
    // The policy that enforces TLS replaces the default one, which lets the account's alarms publish.
    topic.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': Aws.ACCOUNT_ID } },
      }),
    );
    for (const email of alarmEmails) topic.addSubscription(new EmailSubscription(email));
    for (const url of alarmUrls) topic.addSubscription(new UrlSubscription(url));
    return topic;
  }
}

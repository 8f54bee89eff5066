import { CfnOutput, Duration, Stack } from 'aws-cdk-lib';
import type { HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import {
  AlarmStatusWidget,
  Dashboard as CloudWatchDashboard,
  GraphWidget,
  type IMetric,
  type IWidget,
  Metric,
  Stats,
} from 'aws-cdk-lib/aws-cloudwatch';
import { Construct } from 'constructs';
import { TERMINAL_STATUSES } from '../lambdas/run/run.ts';
import { METRICS, type MetricDefinition, metricNamespace } from '../lambdas/telemetry/metrics.ts';
import type { Alarms } from './alarms.ts';
import { NodeFunction } from './node-function.ts';
import type { StageConfig } from './stage-config.ts';
import type { WorkQueue } from './work-queue.ts';

const EVERY = Duration.minutes(5);
/** CloudWatch's grid is 24 columns wide. */
const WIDTH = 24;
const HEIGHT = 6;

interface DashboardProps {
  config: StageConfig;
  api: HttpApi;
  /** Functions that receive webhooks and Slack decisions, by the label to show. */
  intake: Record<string, NodeFunction>;
  queues: Record<string, WorkQueue>;
  alarms: Alarms;
}

/** The CloudWatch dashboard of the stage. Rows are in the order in which data flows. */
export class Dashboard extends Construct {
  readonly #namespace: string;

  constructor(scope: Construct, id: string, props: DashboardProps) {
    super(scope, id);
    const { config, api, intake, queues, alarms } = props;
    this.#namespace = metricNamespace(config.stage);
    const dashboardName = `countersign-${config.stage}`;
    const dashboard = new CloudWatchDashboard(this, 'Dashboard', { dashboardName, defaultInterval: Duration.hours(6) });
    dashboard.addWidgets(new AlarmStatusWidget({ title: 'Alarms', alarms: alarms.all, width: WIDTH, height: HEIGHT }));
    dashboard.addWidgets(
      ...row(
        ['Ingest: deliveries', labelled(intake, (each) => each.metricInvocations({ period: EVERY }))],
        [
          'Ingest: p99 duration, ms',
          labelled(intake, (each) => each.metricDuration({ period: EVERY, statistic: Stats.p(99) })),
        ],
        [
          'Ingest: rejected and failed',
          [
            api.metricClientError({ period: EVERY, statistic: 'sum', label: '4xx' }),
            api.metricServerError({ period: EVERY, statistic: 'sum', label: '5xx' }),
            ...labelled(intake, (each) => each.metricThrottles({ period: EVERY }), 'throttled'),
          ],
        ],
      ),
    );
    dashboard.addWidgets(
      ...row(
        [
          'Queues: visible messages',
          labelled(queues, ({ queue }) => queue.metricApproximateNumberOfMessagesVisible({ period: EVERY })),
        ],
        [
          'Queues: age of the oldest message, s',
          labelled(queues, ({ queue }) => queue.metricApproximateAgeOfOldestMessage({ period: EVERY })),
        ],
        ['Sweeper: age of the oldest due row, s', [this.#own(METRICS.oldestDueSeconds, 'max', 'oldest due row')]],
      ),
    );
    dashboard.addWidgets(
      ...row(
        [
          'Runs by result',
          TERMINAL_STATUSES.map((status) => this.#own(METRICS.runDuration, Stats.SAMPLE_COUNT, status, { status })),
        ],
        ['Approvals: waiting', [this.#own(METRICS.approvalsWaiting, 'max', 'waiting')]],
        ['Approvals: became overdue', [this.#own(METRICS.approvalsOverdue, 'sum', 'overdue')]],
      ),
    );
    dashboard.addWidgets(
      ...row(
        ['Errors of functions', this.#functionErrors(scope)],
        [
          'Dead letters',
          labelled(queues, ({ deadLetters }) =>
            deadLetters.metricApproximateNumberOfMessagesVisible({ period: EVERY }),
          ),
        ],
      ),
    );
    const { region } = Stack.of(this);
    new CfnOutput(Stack.of(this), 'DashboardUrl', {
      value: `https://${region}.console.aws.amazon.com/cloudwatch/home?region=${region}#dashboards/dashboard/${dashboardName}`,
    });
  }

  #own(
    { name: metricName }: MetricDefinition,
    statistic: string,
    label: string,
    dimensionsMap: Record<string, string> = {},
  ): Metric {
    return new Metric({ namespace: this.#namespace, metricName, statistic, label, dimensionsMap, period: EVERY });
  }

  #functionErrors(stack: Construct): IMetric[] {
    const functions = stack.node.findAll().filter((each) => each instanceof NodeFunction);
    return functions.map((each) =>
      each.metricErrors({ period: EVERY, label: each.node.path.split('/').slice(1).join(' ') }),
    );
  }
}

function labelled<T>(things: Record<string, T>, metricOf: (thing: T) => Metric, suffix = ''): Metric[] {
  return Object.entries(things).map(([name, thing]) => metricOf(thing).with({ label: `${name} ${suffix}`.trim() }));
}

type Graph = [title: string, metrics: IMetric[]];

/** Graphs next to each other, over the full width. */
function row(...graphs: Graph[]): IWidget[] {
  const width = WIDTH / graphs.length;
  return graphs.map(([title, left]) => new GraphWidget({ title, left, width, height: HEIGHT, leftYAxis: { min: 0 } }));
}

import { CfnOutput, Duration, Stack } from 'aws-cdk-lib';
import type { HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import {
  AlarmStatusWidget,
  Dashboard as CloudWatchDashboard,
  GraphWidget,
  type IMetric,
  type IWidget,
  type MathExpression,
  Metric,
  Stats,
  TextWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import { Construct } from 'constructs';
import { METRICS, type MetricDefinition, metricNamespace } from '../../lambdas/telemetry/metrics.ts';
import { NodeFunction } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { StageConfig } from '../stage-config.ts';
import type { WorkQueue } from '../work-queue.ts';
import type { Alarms } from './alarms.ts';
import type { Objective } from './objectives.ts';

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
  objectives: readonly Objective[];
  runTable: RunTable;
}

type Graph = [title: string, metrics: IMetric[]];
interface Section {
  question: string;
  rows: Graph[][];
}

/** The CloudWatch dashboard of the stage: the five questions of an operator, each with its graphs. */
export class Dashboard extends Construct {
  readonly #namespace: string;

  constructor(scope: Construct, id: string, props: DashboardProps) {
    super(scope, id);
    const { config, alarms } = props;
    this.#namespace = metricNamespace(config.stage);
    const dashboardName = `countersign-${config.stage}`;
    const dashboard = new CloudWatchDashboard(this, 'Dashboard', { dashboardName, defaultInterval: Duration.hours(6) });
    const sections: Section[] = [
      { question: 'Is it healthy?', rows: this.#health(scope, props) },
      { question: 'Are people the bottleneck?', rows: this.#people() },
      { question: 'Are the targets the bottleneck?', rows: this.#targets() },
      { question: 'What do the agents do?', rows: this.#agents() },
      { question: 'What does it cost?', rows: this.#cost(props) },
    ];
    const { all } = alarms;
    dashboard.addWidgets(new AlarmStatusWidget({ title: 'Alarms', alarms: all, width: WIDTH, height: HEIGHT }));
    for (const { question, rows } of sections) {
      dashboard.addWidgets(new TextWidget({ markdown: `## ${question}`, width: WIDTH, height: 1 }));
      for (const graphs of rows) dashboard.addWidgets(...row(...graphs));
    }
    const { region } = Stack.of(this);
    new CfnOutput(Stack.of(this), 'DashboardUrl', {
      value: `https://${region}.console.aws.amazon.com/cloudwatch/home?region=${region}#dashboards/dashboard/${dashboardName}`,
    });
  }

  #health(scope: Construct, { api, intake, queues, objectives }: DashboardProps): Graph[][] {
    const shares = objectives.map((objective) => {
      const metric = objective.badShare(EVERY) as MathExpression;
      return metric.with({ label: `${objective.title}: at most ${(100 * (1 - objective.target)).toFixed(1)}%` });
    });
    return [
      [
        ['Ingest: deliveries by result', this.#byValue(METRICS.deliveries, 'status', 'Sum')],
        ['Ingest: duration of functions, p99 ms', labelled(intake, (each) => each.metricDuration({ statistic: P99 }))],
        [
          'Rejected and failed requests',
          [
            api.metricClientError({ period: EVERY, statistic: 'Sum', label: '4xx' }),
            api.metricServerError({ period: EVERY, statistic: 'Sum', label: '5xx' }),
            ...labelled(intake, (each) => each.metricThrottles(), 'throttled'),
          ],
        ],
      ],
      [
        ['Objectives: share of bad events', shares],
        ['Runs by result', this.#byValue(METRICS.runDuration, 'status', Stats.SAMPLE_COUNT)],
        ['Active runs', this.#byValue(METRICS.activeRuns, 'status', 'Maximum')],
      ],
      [
        [
          'Age of the oldest message and of the oldest due row, s',
          [
            ...labelled(queues, ({ queue }) => queue.metricApproximateAgeOfOldestMessage()),
            this.#own(METRICS.oldestDueSeconds, 'Maximum', 'oldest due row'),
          ],
        ],
        [
          'Messages: visible, and dead letters',
          [
            ...labelled(queues, ({ queue }) => queue.metricApproximateNumberOfMessagesVisible()),
            ...labelled(queues, ({ deadLetters }) => deadLetters.metricApproximateNumberOfMessagesVisible(), 'dead'),
          ],
        ],
        ['Errors of functions', this.#functionErrors(scope)],
      ],
    ];
  }

  #people(): Graph[][] {
    const { environment: environments } = METRICS.approvalWait.dimensions;
    const waits = ['p50', 'p95'].flatMap((statistic) =>
      environments.map((environment) =>
        this.#own(METRICS.approvalWait, statistic, `${environment} ${statistic}`, { environment }),
      ),
    );
    const decided = ['p50', 'p95'].map((statistic) => this.#own(METRICS.decisionToStep, statistic, statistic));
    return [
      [
        ['Approvals: time to a decision, s', waits],
        [
          'Approvals: waiting, and became overdue',
          [
            this.#own(METRICS.approvalsWaiting, 'Maximum', 'waiting'),
            this.#own(METRICS.approvalsOverdue, 'Sum', 'became overdue'),
          ],
        ],
        ['From the decision to the step, s (objective: 2)', decided],
      ],
    ];
  }

  #targets(): Graph[][] {
    const { connector: connectors, environment: environments } = METRICS.stepDuration.dimensions;
    const durations = connectors.flatMap((connector) =>
      environments.map((environment) =>
        this.#own(METRICS.stepDuration, 'p95', `${connector} ${environment}`, { connector, environment }),
      ),
    );
    return [
      [
        ['Steps: duration by connector, p95 s', durations],
        ['Steps: failures by connector', this.#byValue(METRICS.stepFailures, 'connector', 'Sum')],
        [
          'Steps: retries, and writes with an unknown outcome',
          [
            ...this.#byValue(METRICS.retries, 'connector', 'Sum'),
            ...this.#byValue(METRICS.unknownOutcomes, 'connector', 'Sum', 'unknown'),
          ],
        ],
      ],
    ];
  }

  #agents(): Graph[][] {
    return [
      [
        ['Agents by state', this.#byValue(METRICS.agents, 'status', 'Maximum')],
        ['Assignments by result', this.#byValue(METRICS.workerAssignments, 'status', 'Sum')],
        [
          'Violations of profiles; time for credentials, p95 s',
          [
            this.#own(METRICS.profileViolations, 'Sum', 'violations'),
            ...this.#byValue(METRICS.credentialFetch, 'source', 'p95'),
          ],
        ],
      ],
    ];
  }

  #cost({ runTable: { table } }: DashboardProps): Graph[][] {
    const units = { period: EVERY, statistic: 'Sum' };
    return [
      [
        ['Models, USD', [this.#own(METRICS.modelCost, 'Sum', 'USD')]],
        [
          'DynamoDB: capacity units',
          [
            table.metricConsumedWriteCapacityUnits({ ...units, label: 'write' }),
            table.metricConsumedReadCapacityUnits({ ...units, label: 'read' }),
          ],
        ],
        [
          'Wasted work: conflicts, and known deliveries',
          [
            ...this.#byValue(METRICS.commitConflicts, 'status', 'Sum'),
            this.#own(METRICS.deliveries, 'Sum', 'known deliveries', { status: 'duplicate' }),
          ],
        ],
      ],
    ];
  }

  #own({ name: metricName }: MetricDefinition, statistic: string, label: string, dimensionsMap = {}): Metric {
    return new Metric({ namespace: this.#namespace, metricName, statistic, label, dimensionsMap, period: EVERY });
  }

  /** One line for each value of the metric's only dimension. */
  #byValue(definition: MetricDefinition, dimension: string, statistic: string, suffix = ''): Metric[] {
    return (definition.dimensions[dimension] ?? []).map((value) =>
      this.#own(definition, statistic, `${value} ${suffix}`.trim(), { [dimension]: value }),
    );
  }

  #functionErrors(stack: Construct): IMetric[] {
    const functions = stack.node.findAll().filter((each) => each instanceof NodeFunction);
    return functions.map((each) =>
      each.metricErrors({ period: EVERY, label: each.node.path.split('/').slice(1).join(' ') }),
    );
  }
}

const P99 = Stats.p(99);

function labelled<T>(things: Record<string, T>, metricOf: (thing: T) => Metric, suffix = ''): Metric[] {
  return Object.entries(things).map(([name, thing]) =>
    metricOf(thing).with({ label: `${name} ${suffix}`.trim(), period: EVERY }),
  );
}

/** Graphs next to each other, over the full width. */
function row(...graphs: Graph[]): IWidget[] {
  const width = WIDTH / graphs.length;
  return graphs.map(([title, left]) => new GraphWidget({ title, left, width, height: HEIGHT, leftYAxis: { min: 0 } }));
}

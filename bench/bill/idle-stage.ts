import { FIREWALL_RULES } from '../../lib/console/firewall.ts';
import type { ResolvedStack } from '../../local/template/template.ts';
import { PRICES } from './prices.ts';

const MINUTES_A_MONTH = 30 * 24 * 60;
/** Composite alarms have a price of their own. */
const COMPOSITE_ALARM_USD = 0.5;
/** Lambda polls a queue without messages with five connections, each for 20 s. */
const POLLS_A_MONTH = 5 * 3 * MINUTES_A_MONTH;
/** Assumed for a sweep that finds nothing. At ten times as much the line would still be below 0.40 USD. */
const SWEEP_SECONDS = 0.1;
const SWEEP_GIGABYTES = 0.5;
/** What the sweeper records although nothing happens: oldest due row, waiting approvals, open sockets. */
const GAUGES = 3;

export interface IdleLine {
  line: string;
  count: number;
  usd: number;
}

/** What a stage without traffic costs in a month at list prices, from its template. Free tiers are not deducted. */
export function idleBill(stack: ResolvedStack): IdleLine[] {
  const count = (type: string) => stack.ofType(type).length;
  const alarms = stack.ofType('AWS::CloudWatch::Alarm');
  // An alarm on an expression costs as much as its metrics.
  const watched = alarms.reduce((sum, { properties }) => sum + metricsOf(properties.Metrics), 0);
  const polled = stack.ofType('AWS::Lambda::EventSourceMapping').filter(isOfQueue).length;
  const line = (name: string, units: number, usd: number): IdleLine => ({ line: name, count: units, usd: units * usd });
  const sweepUsd = PRICES.lambdaRequest + SWEEP_SECONDS * SWEEP_GIGABYTES * PRICES.lambdaArmGigabyteSecond;
  const schedules = stack.ofType('AWS::Events::Rule').map(({ properties }) => perMonth(properties.ScheduleExpression));
  return [
    line('secrets', count('AWS::SecretsManager::Secret'), PRICES.secretMonth),
    line('keys', count('AWS::KMS::Key'), PRICES.kmsKeyMonth),
    line('metrics of alarms', watched, PRICES.alarmMonth),
    line('alarms on objectives (composite)', count('AWS::CloudWatch::CompositeAlarm'), COMPOSITE_ALARM_USD),
    line('dashboards', count('AWS::CloudWatch::Dashboard'), PRICES.dashboardMonth),
    line('metrics that the sweeper records', GAUGES, PRICES.metricMonth),
    line(
      'invocations of schedules',
      schedules.reduce((sum, each) => sum + each, 0),
      sweepUsd,
    ),
    line('polls of empty queues', polled * POLLS_A_MONTH, PRICES.sqsRequest),
    ...optionalLines(stack).map(([name, units, usd]) => line(name, units, usd)),
  ].filter((each) => each.count > 0);
}

/** What a stage has only if its settings ask for it. A NAT gateway belongs to the VPC, and not to the stage. */
function optionalLines(stack: ResolvedStack): [name: string, units: number, usd: number][] {
  const distributions = stack
    .ofType('AWS::CloudFront::Distribution')
    .map(({ properties }) => properties.DistributionConfig as { Aliases?: string[]; WebACLId?: string });
  const firewalls = distributions.filter(({ WebACLId }) => WebACLId).length;
  const interfaces = stack
    .ofType('AWS::EC2::VPCEndpoint')
    .filter(({ properties }) => properties.VpcEndpointType === 'Interface')
    .reduce((sum, { properties }) => sum + (properties.SubnetIds as string[]).length, 0);
  return [
    // CloudFront, its certificates and alias records cost nothing without traffic.
    ['domain names', distributions.flatMap(({ Aliases = [] }) => Aliases).length, 0],
    ['web ACLs of the firewall', firewalls, PRICES.webAclMonth],
    ['rules of the firewall', firewalls * FIREWALL_RULES, PRICES.webAclRuleMonth],
    ['VPC endpoints, in each subnet', interfaces, PRICES.vpcEndpointMonth],
  ];
}

const metricsOf = (metrics: unknown): number =>
  Array.isArray(metrics) ? metrics.filter((each) => (each as { MetricStat?: unknown }).MetricStat).length : 1;

const isOfQueue = ({ properties }: { properties: Record<string, unknown> }): boolean =>
  String(properties.EventSourceArn).includes(':sqs:');

function perMonth(expression: unknown): number {
  const [, every = '1', unit = 'minute'] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(String(expression)) ?? [];
  const minutes = { minute: 1, hour: 60, day: 24 * 60 }[unit] ?? 1;
  return MINUTES_A_MONTH / (Number(every) * minutes);
}

export function printIdleBill(title: string, lines: readonly IdleLine[], print: (text: string) => void): void {
  print(title);
  for (const { line, count, usd } of lines) {
    print(`${line.padEnd(42)}${String(Math.round(count)).padStart(12)}${usd.toFixed(2).padStart(10)}`);
  }
  print(`${'total'.padEnd(54)}${idleTotal(lines).toFixed(2).padStart(10)}`);
}

export const idleTotal = (lines: readonly IdleLine[]): number => lines.reduce((sum, { usd }) => sum + usd, 0);

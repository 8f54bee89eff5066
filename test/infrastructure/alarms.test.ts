import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { LOGGED } from '../../lambdas/entry/environment.ts';
import { readAssembly } from '../../local/template/synthesize.ts';

const runbook = readFileSync(join(import.meta.dirname, '..', '..', 'RUNBOOK.md'), 'utf8');
const resourcesOf = (stage: 'local' | 'acme-prod') =>
  Object.values(readAssembly(inject('assemblies')[stage], stage).template.Resources ?? {});
const resources = resourcesOf('local');
const metricAlarms = resources.filter(({ Type }) => Type === 'AWS::CloudWatch::Alarm');
const combined = resources.filter(({ Type }) => Type === 'AWS::CloudWatch::CompositeAlarm');
const rules = JSON.stringify(combined.map(({ Properties }) => Properties?.AlarmRule));
const logicalIds = Object.keys(readAssembly(inject('assemblies').local).template.Resources ?? {});
/** Each is a window of a combined alarm, which notifies for it. */
const windows = metricAlarms.filter((alarm) => rules.includes(`"${logicalIds[resources.indexOf(alarm)]}"`));
const alarms = [...metricAlarms.filter((alarm) => !windows.includes(alarm)), ...combined];

const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');

it('every alarm links an existing heading of the runbook', () => {
  expect(alarms.length).toBeGreaterThan(0);
  for (const { Properties } of [...alarms, ...windows]) {
    const [, anchor = '', heading = ''] =
      /^RUNBOOK\.md#([a-z0-9-]+): ([^(]+?)( \(.+\))?$/.exec(String(Properties?.AlarmDescription)) ?? [];
    expect(runbook.split('\n')).toContain(`## ${heading}`);
    expect(anchor).toBe(anchorOf(heading));
  }
});

it('each objective has a fast and a slow burn rate, each over two windows that must both show it', () => {
  const named = combined.map(({ Properties }) => String(Properties?.AlarmName));
  expect(named.toSorted()).toEqual(
    ['Completion', 'Decision', 'Ingest'].flatMap((id) => [
      `countersign-local-${id}BurnsFast`,
      `countersign-local-${id}BurnsSlow`,
    ]),
  );
  expect(windows).toHaveLength(12);
  for (const { Properties } of windows) expect(Properties).not.toHaveProperty('AlarmActions');
  const periodOf = ({ Properties }: (typeof windows)[number]) => {
    const queries = (Properties?.Metrics ?? []) as { MetricStat?: { Period: number } }[];
    return queries.find(({ MetricStat }) => MetricStat)?.MetricStat?.Period;
  };
  const ingest = windows.filter((each) => logicalIds[resources.indexOf(each)]?.startsWith('AlarmsIngest'));
  expect(ingest.map((each) => [periodOf(each), Number(Number(each.Properties?.Threshold).toFixed(6))])).toEqual([
    [3600, 0.0144],
    [300, 0.0144],
    [21_600, 0.006],
    [1800, 0.006],
  ]);
});

it('a repeated delivery with another body, broken evidence, a broken rule, each message in LOGGED and a dead letter of any queue raise an alarm', () => {
  const filters = resources.filter(({ Type }) => Type === 'AWS::Logs::MetricFilter');
  expect(filters.map(({ Properties }) => Properties?.FilterPattern).sort()).toEqual([
    '{ $.error.name = "CHAIN_BROKEN" }',
    '{ $.error.name = "IDEMPOTENCY_CONFLICT" }',
    '{ $.error.name = "IDEMPOTENCY_CONFLICT" }',
    '{ $.error.name = "IDEMPOTENCY_CONFLICT" }',
    '{ $.error.name = "RULES_BROKEN" }',
    // Every function that checks signatures reads the secrets, and a tenant may use only one of them.
    ...[...Object.values(LOGGED), LOGGED.secretNotUsed, LOGGED.secretNotUsed, LOGGED.secretNotUsed]
      .map((sentence) => `{ $.message = "${sentence}" }`)
      .sort(),
  ]);
  const deadLetterQueues = resources.filter(({ Properties }) => Properties?.MessageRetentionPeriod === 14 * 24 * 3600);
  const onQueues = alarms.filter(({ Properties }) => Properties?.MetricName === 'ApproximateNumberOfMessagesVisible');
  expect(onQueues).toHaveLength(deadLetterQueues.length);
});

it('a sweeper that fails or is not invoked for 5 minutes raises an alarm', () => {
  const onSweeper = alarms.filter(({ Properties }) =>
    JSON.stringify(Properties?.Dimensions ?? []).includes('SweepSweeper'),
  );
  expect(onSweeper.map(({ Properties }) => Properties)).toMatchObject([
    { MetricName: 'Throttles', Threshold: 1 },
    { MetricName: 'Errors', Threshold: 1, ComparisonOperator: 'GreaterThanOrEqualToThreshold' },
    {
      MetricName: 'Invocations',
      Period: 5 * 60,
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      TreatMissingData: 'breaching',
    },
  ]);
});

it('the log of a stage raises no alarm of another stage', () => {
  for (const stage of ['local', 'acme-prod'] as const) {
    const filters = resourcesOf(stage).filter(({ Type }) => Type === 'AWS::Logs::MetricFilter');
    expect(filters.length).toBeGreaterThan(0);
    for (const { Properties } of filters) {
      expect(Properties?.MetricTransformations).toMatchObject([{ MetricNamespace: `Countersign/${stage}` }]);
    }
  }
});

it('every alarm notifies the topic when it starts and ends, and CloudWatch may publish to it', () => {
  const topic = { Ref: expect.stringMatching(/^AlarmsTopic/) };
  for (const { Properties } of alarms) {
    expect([Properties?.AlarmActions, Properties?.OKActions]).toEqual([[topic], [topic]]);
  }
  const [policy] = resources.filter(({ Type }) => Type === 'AWS::SNS::TopicPolicy');
  expect(policy?.Properties?.PolicyDocument).toMatchObject({
    Statement: expect.arrayContaining([
      expect.objectContaining({
        Action: 'sns:Publish',
        Condition: { StringEquals: { 'aws:SourceAccount': { Ref: 'AWS::AccountId' } } },
        Effect: 'Allow',
        Principal: { Service: 'cloudwatch.amazonaws.com' },
        Resource: topic,
      }),
    ]),
  });
});

it('server errors, throttles and old messages raise an alarm', () => {
  const one = (id: string) => {
    const found = Object.entries(readAssembly(inject('assemblies').local).template.Resources ?? {}).filter(
      ([logicalId]) => logicalId.startsWith(`Alarms${id}`),
    );
    expect(found).toHaveLength(1);
    return found[0]?.[1].Properties;
  };
  expect(one('ServerErrors')).toMatchObject({ Namespace: 'AWS/ApiGateway', MetricName: '5xx', Threshold: 1 });
  for (const id of ['StepMessagesWait', 'EvidenceMessagesWait', 'ApprovalMessagesWait']) {
    expect(one(id)).toMatchObject({
      MetricName: 'ApproximateAgeOfOldestMessage',
      Threshold: 1200,
      EvaluationPeriods: 3,
    });
  }
  const throttled = ['github', 'servicenow', 'slack', 'worker', 'sweeper', 'seal'].map((id) => one(`${id}Throttled`));
  for (const alarm of throttled) {
    expect(alarm).toMatchObject({ Namespace: 'AWS/Lambda', MetricName: 'Throttles', Statistic: 'Sum', Threshold: 1 });
  }
  expect(new Set(throttled.map((alarm) => JSON.stringify(alarm?.Dimensions))).size).toBe(throttled.length);
});

it('an expression has a value although some of its metrics have none', () => {
  const expressions = windows.map(({ Properties }) => JSON.stringify(Properties?.Metrics));
  expect(expressions.length).toBe(12);
  for (const expression of expressions) expect(expression).toMatch(/IF\(.*FILL\(/);
  expect(alarms.filter(({ Properties }) => Properties?.Metrics !== undefined)).toEqual([]);
});

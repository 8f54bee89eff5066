import { DeleteMessageCommand, ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { LOGGED } from '../../../lambdas/entry/environment.ts';
import { invokeFunction } from '../../../lambdas/entry/invoke-function.ts';
import { counted, METRICS, type Measurement, measured } from '../../../lambdas/telemetry/metrics.ts';
import { LogTelemetry } from '../../../lambdas/telemetry/telemetry.ts';
import { REGION } from '../../../local/aws/aws.ts';
import { HOST_CREDENTIALS } from '../../../local/aws/aws-endpoint.ts';
import type { AlarmNotification, ShownAlarm } from '../../../local/cloud/cloudwatch/cloudwatch.ts';
import type { ResolvedResource } from '../../../local/template/template.ts';
import { githubRequest, issueOpened } from '../harness/deliveries.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const MINUTE_MS = 60_000;
/** Longer than a message may wait (20 minutes, three times), and than the sweeper may be silent (15). */
const LONG_ENOUGH_MS = 26 * MINUTE_MS;
/** Longer than the longest window of an alarm, 6 hours. */
const FORGOTTEN_MS = 7 * 60 * MINUTE_MS;
/** A message is hidden for less than this after each of the deliveries after which it is a dead letter. */
const DELIVERIES_MAX = 5;
const HIDDEN_MS = 15 * MINUTE_MS;
const DELAY_MAX_SECONDS = 900;

let host: TestHost;
let sqs: SQSClient;
beforeAll(async () => {
  host = await startTestHost();
  sqs = new SQSClient(host.clientConfig());
});
afterAll(async () => {
  sqs.destroy();
  await host.stop();
});

interface Alarms {
  alarms: ShownAlarm[];
  notifications: AlarmNotification[];
}

const alarmsNow = () => host.ask<Alarms>('GET', '/_local/alarms');
const nameOf = ({ logicalId }: Pick<ShownAlarm, 'logicalId'>) => logicalId.replace(/^Alarms|[0-9A-F]{8}$/g, '');

const functionNamed = (start: string) => host.only('AWS::Lambda::Function', start);

async function invoke(functionName: string): Promise<void> {
  const { endpoint } = host.clientConfig();
  const target = { functionName, region: REGION, endpoint, credentials: HOST_CREDENTIALS };
  await invokeFunction(target, {}).catch(() => undefined);
}

/** Lambda throttles the next invocation, or the function fails in it. */
async function failOnce(lambda: ResolvedResource, kind: 'throttle' | 'error'): Promise<void> {
  await host.clearFaults();
  await host.fault({ service: 'invocation', function: lambda.logicalId, kind, times: 1 });
  await invoke(lambda.ref);
}

/** What a function logs goes to the metric filters of its log group. */
const logged = (functionStart: string, line: object): void =>
  host.cloudWatch.collect(functionNamed(functionStart).logicalId, { level: 'ERROR', ...line });

/** What a function measures, in the lines that it logs. */
function measure(functionStart: string, ...measurements: Measurement[]): void {
  const { logicalId } = functionNamed(functionStart);
  const clock = { now: () => Date.now() };
  const lines = new LogTelemetry({
    ...{ stage: 'local', environment: 'dev', level: 'INFO', clock },
    write: (line) => host.cloudWatch.collect(logicalId, JSON.parse(line)),
  });
  for (const each of measurements) lines.record(each);
}

const times = (count: number, one: () => Measurement) => Array.from({ length: count }, one);

const queueNamed = (start: string, dead: boolean) =>
  host.stack
    .ofType('AWS::SQS::Queue')
    .find(({ logicalId }) => logicalId.startsWith(start) && logicalId.includes('DeadLetters') === dead)?.ref ??
  expect.fail(`no queue ${start}`);

const sendTo = (QueueUrl: string, DelaySeconds = 0) =>
  sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: '{"no":"run"}', MessageGroupId: 'acme', DelaySeconds }));

async function empty(QueueUrl: string): Promise<void> {
  for (;;) {
    const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }));
    if (Messages.length === 0) return;
    for (const { ReceiptHandle } of Messages) await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
  }
}

const QUEUES = ['StepQueue', 'SealQueue', 'ApprovalFlow'];
const deadLetterQueues = () => QUEUES.map((start) => queueNamed(start, true));
const consumers = ['WorkerStep', 'EvidenceVaultSeal', 'ApprovalFlowHold'];

/** How each alarm of the template is caused, except those that follow from a silent host and full queues below. */
const CAUSES: Record<string, () => unknown> = {
  ServerErrors: async () => {
    await host.clearFaults();
    await host.fault({ service: 'invocation', function: 'IntakeGithub', kind: 'error', times: 1 });
    expect((await host.send(githubRequest({ action: 'opened' }))).status).toBe(500);
  },
  SecretNotUsed: () => logged('IntakeGeneric', { message: LOGGED.secretNotUsed }),
  WebhookConflict: async () => {
    await host.clearFaults();
    const deliveryId = 'the-same-delivery';
    for (const [number, status] of [
      [1, 202],
      [2, 409],
    ] as const) {
      expect((await host.sendGithub(issueOpened(number), { deliveryId })).status).toBe(status);
    }
  },
  PolicyUndecided: () => logged('WorkerStep', { message: LOGGED.policyUndecided }),
  CardNotUpdated: () => logged('ApprovalFlowFollow', { message: LOGGED.cardNotUpdated }),
  ScheduleFailed: () => logged('SweepSweeper', { message: LOGGED.scheduleFailed }),
  EvidenceRefused: () => logged('EvidenceVaultSeal', { error: { name: 'CHAIN_BROKEN' } }),
  RulesBroken: () => logged('EvidenceVaultSeal', { error: { name: 'RULES_BROKEN' } }),
  ProfileViolations: () => measure('AgentApiWork', counted(METRICS.profileViolations, {})),
  SweeperFailing: () => failOnce(functionNamed('SweepSweeper'), 'error'),
  EvidenceLogFailing: () => failOnce(functionNamed('EvidenceLogCloseDays'), 'error'),
  Ingest: () =>
    measure(
      'IntakeGithub',
      ...times(20, () => counted(METRICS.deliveries, { status: 'started' })),
      counted(METRICS.deliveries, { status: 'failed' }),
    ),
  Decision: () => measure('WorkerStep', ...times(12, () => measured(METRICS.decisionToStep, 3, {}))),
  Completion: () =>
    measure('EvidenceVaultSeal', ...times(12, () => measured(METRICS.runDuration, 9, { status: 'needs_human' }))),
};

it('every alarm of the template starts, notifies the topic, and recovers', async () => {
  const { alarms: before } = await alarmsNow();
  expect(before.filter(({ state }) => state !== 'OK')).toEqual([]);

  for (const { logicalId, properties } of host.stack.ofType('AWS::CloudWatch::Alarm')) {
    if (properties.MetricName !== 'Throttles') continue;
    const [{ Value }] = properties.Dimensions as [{ Value: string }];
    const throttled = host.stack.ofType('AWS::Lambda::Function').find(({ ref }) => ref === Value);
    await failOnce(throttled ?? expect.fail(logicalId), 'throttle');
  }
  for (const cause of Object.values(CAUSES)) await cause();
  logged('SweepSweeper', { message: LOGGED.outboxEntryStuck });
  // Consumers and sweeper are throttled from now on, so messages wait and nothing is swept.
  await host.clearFaults();
  for (const lambda of [...consumers, 'SweepSweeper']) {
    await host.fault({ service: 'invocation', function: lambda, kind: 'throttle', times: 'always' });
  }
  // Delayed, because five deliveries to a throttled worker take only 15 minutes; then a message is a dead letter.
  for (const queue of QUEUES) await sendTo(queueNamed(queue, false), DELAY_MAX_SECONDS);
  for (const queue of [...deadLetterQueues(), queueNamed('LiveFeedLost', false)]) await sendTo(queue);
  for (let minute = 0; minute < LONG_ENOUGH_MS / MINUTE_MS; minute += 1) {
    // A due row that the sweeper finds again and again.
    measure('SweepSweeper', measured(METRICS.oldestDueSeconds, 900, {}));
    await host.advance(MINUTE_MS);
    await alarmsNow();
  }
  const { alarms, notifications } = await alarmsNow();
  const fired = new Set(notifications.filter(({ state }) => state === 'ALARM').map(({ alarm }) => alarm));
  const notifying = alarms.filter(({ name }) => !isWindow(name));
  expect(notifying.filter(({ name }) => !fired.has(name)).map(nameOf)).toEqual([]);

  await host.clearFaults();
  // Each message is delivered again until it is a dead letter, which a person deletes.
  for (let delivery = 0; delivery <= DELIVERIES_MAX; delivery += 1) {
    await host.advance(HIDDEN_MS);
    await host.idle();
  }
  for (const queue of [...deadLetterQueues(), queueNamed('LiveFeedLost', false)]) await empty(queue);
  await host.advance(FORGOTTEN_MS);
  await host.sweep();
  await host.advance(MINUTE_MS);
  const after = await alarmsNow();
  expect(after.alarms.filter(({ state }) => state !== 'OK').map(nameOf)).toEqual([]);
  const last = new Map(after.notifications.map(({ alarm, state, topicArn }) => [alarm, { state, topicArn }]));
  const topicArn = host.only('AWS::SNS::Topic').ref;
  for (const { name } of notifying) expect(last.get(name), name).toEqual({ state: 'OK', topicArn });
});

/** The windows of objectives notify nobody: the alarm that combines them does. */
const isWindow = (name: string): boolean =>
  host.stack.ofType('AWS::CloudWatch::Alarm').some(({ ref, properties }) => ref === name && !properties.AlarmActions);

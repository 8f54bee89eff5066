import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { slotCounterKey } from '../../../lambdas/run/dynamo/dynamo-keys.ts';
import { publish } from '../harness/definitions.ts';
import { eventually } from '../harness/eventually.ts';
import type { ShownRun } from '../harness/host-client.ts';
import { saveSettings } from '../harness/settings.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** A little less than a client waits for a response; the test releases it earlier. */
const HELD_MS = 9_000;
const DRAFTED_BEFORE_MS = 2_000;
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
});
/** Each test has its own event, workflow and issues, and starts with a tenant without caps. */
afterEach(async () => {
  await host.clearFaults();
  await saveSettings(host, { caps: {} });
});
afterAll(() => host.stop());

const label = (id: string) => ({
  id,
  tool: 'github.labels.add',
  with: { owner: 'octo-org', repo: 'payments', number: '{% trigger.number %}', labels: [id] },
});

async function start(action: string, number: number): Promise<string> {
  const { body } = await host.sendGithub({
    action,
    issue: { number, title: `Issue ${number}` },
    repository: { name: 'payments', full_name: 'octo-org/payments' },
  });
  return body.runIds[0] ?? '';
}

const spanOf = (run: ShownRun) => {
  const begun = run.commits.find(({ events }) =>
    events.some((event) => event.type === 'run.status_changed' && event.to === 'running'),
  );
  return { from: begun?.at ?? '', to: run.commits.at(-1)?.at ?? '' };
};

async function placesTaken(): Promise<number> {
  const client = new DynamoDBClient(host.clientConfig());
  const { Item } = await client.send(
    new GetItemCommand({ TableName: host.tableName, Key: marshall(slotCounterKey('acme', 0)), ConsistentRead: true }),
  );
  client.destroy();
  return Item ? unmarshall(Item).running : 0;
}

/** All step messages were received, and one worker still processes one. */
async function onlyOneWorks(): Promise<void> {
  const client = new SQSClient(host.clientConfig());
  const { ref: QueueUrl } = host.only('AWS::SQS::Queue', 'StepQueue6');
  const asked = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['ApproximateNumberOfMessages'] });
  await eventually('only one worker works', async () => {
    const { Attributes } = await client.send(asked);
    const worker = Object.entries(await host.functions()).find(([name]) => name.startsWith('WorkerStep'))?.[1];
    return (Attributes?.ApproximateNumberOfMessages === '0' && worker?.busy === 1) || undefined;
  });
  client.destroy();
}

describe('maxConcurrency', () => {
  it('limits the runs at the same time, starts the others oldest first, and every slot is returned', async () => {
    await saveSettings(host, { caps: { maxConcurrency: 1 } });
    await publish(host, { name: 'two-labels', event: 'issues.closed', steps: [label('one'), label('two')] });
    // The first run continues until all others have found no free slot.
    await host.simulatedFault({ system: 'github', nth: 1, kind: 'delay', delayMs: HELD_MS });
    const runIds = [await start('closed', 1)];
    await host.waitForRun(runIds[0] ?? '', ({ status }) => status === 'running');
    for (let number = 2; number <= 5; number += 1) runIds.push(await start('closed', number));
    await onlyOneWorks();
    const waiting = await Promise.all(runIds.slice(1).map((runId) => host.run(runId)));
    expect(waiting.map(({ status }) => status)).toEqual(['queued', 'queued', 'queued', 'queued']);
    await host.request('DELETE', '/_sim/faults');
    const runs = await host.letTimePassUntil(runIds, ({ status }) => status === 'succeeded');
    const begun = runs.map((run) => spanOf(run).from);
    expect(begun).toEqual([...begun].sort());
    expect(await placesTaken()).toBe(0);
  });

  it('loses no slot when a worker is killed; the slot is free when the run has ended', async () => {
    await saveSettings(host, { caps: { maxConcurrency: 1 } });
    await publish(host, {
      name: 'labels-of-a-dead-worker',
      event: 'issues.reopened',
      steps: [label('one'), label('two')],
    });
    await host.fault({ function: 'WorkerStep', operation: 'TransactWriteItems', nth: 2, kind: 'crash_after' });
    const runIds = [await start('reopened', 21), await start('reopened', 22)];
    await host.letTimePassUntil(runIds, ({ status }) => status === 'succeeded');
    expect(await placesTaken()).toBe(0);
  });
});

it('maxRunsPerMinute makes further runs wait for the next minute', async () => {
  await saveSettings(host, { caps: { maxRunsPerMinute: 2 } });
  await publish(host, { name: 'one-label', event: 'issues.pinned', steps: [label('one')] });
  const runIds: string[] = [];
  for (let number = 31; number <= 35; number += 1) runIds.push(await start('pinned', number));
  const runs = await host.letTimePassUntil(runIds, ({ status }) => status === 'succeeded');
  const minutes = runs.map((run) => spanOf(run).from.slice(0, 16));
  for (const minute of minutes) expect(minutes.filter((each) => each === minute).length).toBeLessThanOrEqual(2);
});

it('maxWritesPerRun ends a run at the first write over the limit', async () => {
  await publish(host, {
    name: 'three-labels',
    event: 'issues.locked',
    caps: { maxWritesPerRun: 2 },
    steps: [label('one'), label('two'), label('three')],
  });
  await host.request('DELETE', '/_sim/calls');
  const run = await host.waitForRun(await start('locked', 41));
  expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'CAP_EXCEEDED' } });
  expect((await host.calls({ system: 'github', method: 'POST' })).length).toBe(2);
});

it('runs with the same concurrency key run one after the other, and others at the same time', async () => {
  await publish(host, {
    name: 'held',
    event: 'issues.unlocked',
    concurrencyKey: '{% trigger.number %}',
    steps: [{ id: 'nap', tool: 'wait', with: { seconds: 120 } }, label('done')],
  });
  const first = await start('unlocked', 51);
  await host.waitForRun(first, ({ status }) => status === 'waiting_external');
  const [second, other] = [await start('unlocked', 51), await start('unlocked', 52)];
  await host.waitForRun(other, ({ status }) => status === 'waiting_external');
  await host.idle();
  expect((await host.run(second)).status).toBe('queued');
  const runs = await host.letTimePassUntil([first, second], ({ status }) => status === 'succeeded');
  const [one, two] = runs.map(spanOf);
  // A commit is dated when it is drafted, a moment before it is made; the nap is two minutes long.
  expect(Date.parse(two?.from ?? '') + DRAFTED_BEFORE_MS).toBeGreaterThan(Date.parse(one?.to ?? ''));
});

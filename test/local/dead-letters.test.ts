import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ACME_KEY, type Answer } from './host-client.ts';
import { startTestHost, type TestHost } from './test-host.ts';

/** How often a message is handed out before the dead-letter queue takes it, and how long it is hidden in between. */
const DELIVERIES_MAX = 5;
const HIDDEN_MS = 181_000;
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());

interface Queues {
  queues?: { queue: string; messages: number }[];
  redriven?: { queue: string; messages: number }[];
}

const ask = (method: string, path: string, key = ACME_KEY): Promise<Answer<Queues>> =>
  host.request(method, `/api/v1${path}`, { headers: { 'x-api-key': key } });

async function poison(): Promise<void> {
  const client = new SQSClient(host.clientConfig());
  const queues = host.stack.ofType('AWS::SQS::Queue');
  const QueueUrl = queues.find(
    ({ logicalId }) => logicalId.startsWith('StepQueue') && !logicalId.includes('DeadLetters'),
  )?.ref;
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: '{"no":"run"}', MessageGroupId: 'acme' }));
  client.destroy();
}

async function untilDead(): Promise<void> {
  for (let delivery = 0; delivery <= DELIVERIES_MAX; delivery += 1) {
    await host.idle();
    await host.advance(HIDDEN_MS);
  }
  await host.idle();
}

it('a poison message ends in the dead-letter queue, its neighbours proceed, and an operator can send it back', async () => {
  await poison();
  const runId = await host.openIssue(901);
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  await untilDead();
  const dead = [
    { queue: 'steps', messages: 1 },
    { queue: 'evidence', messages: 0 },
    { queue: 'approvals', messages: 0 },
  ];
  expect((await ask('GET', '/dead-letters')).body.queues).toEqual(dead);

  expect((await ask('POST', '/dead-letters/redrive', 'local-auditor-key')).status).toBe(403);
  expect(await ask('POST', '/dead-letters/redrive', 'local-operator-key')).toMatchObject({
    status: 202,
    body: { redriven: dead },
  });
  expect((await ask('GET', '/dead-letters')).body.queues?.[0]).toEqual({ queue: 'steps', messages: 0 });
  await untilDead();
  expect((await ask('GET', '/dead-letters')).body.queues).toEqual(dead);
});

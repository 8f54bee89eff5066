import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ResponseFrom } from '../../../client/api-client.ts';
import type { DeadLetter, QueueCount } from '../../../lambdas/api/contract/operations.ts';
import { ACME_KEY, type Answer, GLOBEX_KEY } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

/** How often a message is received before it moves to the dead-letter queue, and how long it is hidden in between. */
const DELIVERIES_MAX = 5;
const HIDDEN_MS = 181_000;
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost();
});
afterAll(() => host.stop());

type Status = ResponseFrom<'GET /api/v1/status'>;

interface Queues {
  deadLetters?: DeadLetter[];
  queues?: QueueCount[];
  redriven?: QueueCount[];
}

const ask = (method: string, path: string, key = ACME_KEY, body?: object): Promise<Answer<Queues>> =>
  host.request(method, `/api/v1${path}`, {
    headers: { 'x-api-key': key },
    ...(body && { body: JSON.stringify(body) }),
  });

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

it('a poison message ends in the dead-letter queue, other messages are processed, and an operator can send it back', async () => {
  await poison();
  const runId = await host.openIssue(901);
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  await untilDead();
  const dead = [
    { queue: 'steps', messages: 1, complete: true },
    { queue: 'evidence', messages: 0, complete: true },
    { queue: 'approvals', messages: 0, complete: true },
  ];
  const { queues, deadLetters: [letter] = [] } = (await ask('GET', '/dead-letters')).body;
  expect(queues).toEqual(dead);
  expect(letter).toMatchObject({ queue: 'steps', kind: null, run: null, attempts: DELIVERIES_MAX });
  const { body } = await host.request<Status>('GET', '/api/v1/status', { headers: { 'x-api-key': ACME_KEY } });
  const { since } = body.problems.find(({ kind, count }) => kind === 'dead_letters' && count === 1) ?? {};
  expect(since).toBe(letter?.sentAt);
  expect(body.lastSweepAt).not.toBeNull();

  expect((await ask('POST', '/dead-letters/redrive', 'local-auditor-key')).status).toBe(403);
  expect(await ask('POST', '/dead-letters/redrive', 'local-operator-key')).toMatchObject({
    status: 202,
    body: { redriven: dead },
  });
  expect((await ask('GET', '/dead-letters')).body.queues?.[0]).toMatchObject({ queue: 'steps', messages: 0 });
  await untilDead();
  expect((await ask('GET', '/dead-letters')).body.queues).toEqual(dead);
});

it('a tenant sees, counts and sends back only its own dead letters, and none is lost', async () => {
  const client = new SQSClient(host.clientConfig());
  const QueueUrl = host.only('AWS::SQS::Queue', 'SealQueueDeadLetters').ref;
  const body = (tenant: string, n: number) => JSON.stringify({ kind: 'nothing', tenant, runId: `run_${n}` });
  const sent: string[] = [];
  for (let n = 0; n < 25; n += 1) sent.push(body(n % 5 === 0 ? 'globex' : 'acme', n));
  // A message that cannot be read belongs to the tenant of its message group; without one it belongs to nobody.
  sent.push('not json', '{"no":"tenant"}');
  for (const MessageBody of sent) await client.send(new SendMessageCommand({ QueueUrl, MessageBody }));
  const evidence = async (method: string, path: string, key: string) => {
    const { body: answered } = await ask(method, path, key);
    return (answered.queues ?? answered.redriven)?.find(({ queue }) => queue === 'evidence');
  };
  expect(await evidence('GET', '/dead-letters', GLOBEX_KEY)).toEqual({
    queue: 'evidence',
    messages: 5,
    complete: true,
  });
  expect(await evidence('GET', '/dead-letters', ACME_KEY)).toMatchObject({ messages: 20 });
  const { deadLetters = [] } = (await ask('GET', '/dead-letters?queue=evidence', GLOBEX_KEY)).body;
  expect(deadLetters.map(({ kind, run }) => [kind, run?.runId])).toEqual(
    [0, 5, 10, 15, 20].map((n) => ['nothing', `run_${n}`]),
  );
  const selected = { ids: deadLetters.slice(0, 2).map(({ id }) => id) };
  const { redriven } = (await ask('POST', '/dead-letters/redrive', GLOBEX_KEY, selected)).body;
  expect(redriven?.map(({ messages }) => messages)).toEqual([0, 2, 0]);
  // Another tenant cannot select them.
  const stolen = await ask('POST', '/dead-letters/redrive', ACME_KEY, { ids: [deadLetters[3]?.id] });
  expect(stolen.body.redriven?.map(({ messages }) => messages)).toEqual([0, 0, 0]);
  expect(await evidence('POST', '/dead-letters/redrive', GLOBEX_KEY)).toMatchObject({ messages: 3 });
  expect(await evidence('GET', '/dead-letters', GLOBEX_KEY)).toMatchObject({ messages: 0 });
  expect(await evidence('GET', '/dead-letters', ACME_KEY)).toMatchObject({ messages: 20 });
  const left: string[] = [];
  for (let more = true; more; ) {
    const { Messages = [] } = await client.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }));
    left.push(...Messages.map(({ Body = '' }) => Body));
    more = Messages.length > 0;
  }
  expect(left.sort()).toEqual(sent.filter((each) => !each.includes('globex')).sort());
  // While somebody else reads them, a count says that it is not complete.
  expect(await evidence('GET', '/dead-letters', ACME_KEY)).toMatchObject({ messages: 0, complete: false });
  client.destroy();
});

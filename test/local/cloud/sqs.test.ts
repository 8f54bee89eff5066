import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  PurgeQueueCommand,
  type QueueAttributeName,
  ReceiveMessageCommand,
  type ReceiveMessageCommandInput,
  SendMessageBatchCommand,
  SendMessageCommand,
  type SendMessageCommandInput,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LocalSqs } from '../../../local/cloud/sqs/sqs.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { orders, ordersDead, queues } from './queues.ts';
import { openWire, temporaryFolder, type Wire } from './wire.ts';

const MIB = 1_048_576;

describe('the local SQS, seen through the AWS SDK', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let clock: HostClock;
  let sqs: LocalSqs;
  let wire: Wire;
  let client: SQSClient;

  async function open(): Promise<void> {
    sqs = new LocalSqs({ dataFolder: folder.path, clock, queues });
    wire = await openWire({ json: { AmazonSQS: sqs } });
    client = new SQSClient(wire.client);
  }
  async function close(): Promise<void> {
    client.destroy();
    await wire.close();
    sqs.close();
  }
  beforeEach(async () => {
    folder = temporaryFolder();
    clock = new HostClock(folder.path);
    await open();
  });
  afterEach(async () => {
    await close();
    clock.stop();
    folder.remove();
  });

  const QueueUrl = orders.url;
  const send = (MessageBody: string, more: Partial<SendMessageCommandInput> = {}) =>
    client.send(new SendMessageCommand({ QueueUrl, MessageBody, ...more }));
  const receive = async (more: Partial<ReceiveMessageCommandInput> = {}) =>
    (await client.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10, ...more }))).Messages ?? [];
  const bodies = async (more: Partial<ReceiveMessageCommandInput> = {}) =>
    (await receive(more)).map(({ Body }) => Body);
  const counts = async (queueUrl = QueueUrl) => {
    const AttributeNames: QueueAttributeName[] = [
      'ApproximateNumberOfMessages',
      'ApproximateNumberOfMessagesNotVisible',
      'ApproximateNumberOfMessagesDelayed',
    ];
    return (await client.send(new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames }))).Attributes;
  };

  it('delivers a message with digests and receive attributes that the SDK accepts', async () => {
    const sent = await send('grüße ✓', { MessageGroupId: 'acme' });
    const [message] = await receive({ MessageSystemAttributeNames: ['All'] });
    expect(message).toMatchObject({ MessageId: sent.MessageId, Body: 'grüße ✓' });
    expect(message?.Attributes).toMatchObject({ ApproximateReceiveCount: '1', MessageGroupId: 'acme' });
    expect(Number(message?.Attributes?.SentTimestamp)).toBeLessThanOrEqual(clock.now());
  });

  it('hides a message in flight until its visibility timeout, then shows it again', async () => {
    await send('once');
    expect(await bodies()).toEqual(['once']);
    expect(await bodies()).toEqual([]);
    expect(await counts()).toMatchObject({
      ApproximateNumberOfMessages: '0',
      ApproximateNumberOfMessagesNotVisible: '1',
    });
    clock.advance(orders.visibilityTimeoutSeconds * 1000);
    const [again] = await receive({ MessageSystemAttributeNames: ['ApproximateReceiveCount'] });
    expect(again?.Attributes?.ApproximateReceiveCount).toBe('2');
  });

  it('changes the visibility of a message in flight, and refuses one that is not', async () => {
    await send('x');
    const [message] = await receive();
    const ReceiptHandle = message?.ReceiptHandle;
    const change = (VisibilityTimeout: number) => {
      const Entries = [{ Id: 'x', ReceiptHandle, VisibilityTimeout }];
      return client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries }));
    };
    await change(100);
    clock.advance(50_000);
    expect(await bodies()).toEqual([]);
    await change(0);
    expect((await change(5)).Failed).toMatchObject([{ Id: 'x', Code: 'MessageNotInflight' }]);
    expect(await bodies()).toEqual(['x']);
  });

  it('keeps messages, their age and their receive count across a restart', async () => {
    await send('waiting');
    await send('in flight', { MessageGroupId: 'a' });
    await receive({ MaxNumberOfMessages: 1, VisibilityTimeout: 60 });
    await close();
    await open();
    expect(await counts()).toMatchObject({
      ApproximateNumberOfMessages: '1',
      ApproximateNumberOfMessagesNotVisible: '1',
    });
    clock.advance(60_000);
    const received = await receive({ MessageSystemAttributeNames: ['All'] });
    expect(received.map(({ Attributes }) => Attributes?.ApproximateReceiveCount).sort()).toEqual(['1', '2']);
  });

  it('deletes only with the latest receipt; an older one has no effect, and one of another queue is refused', async () => {
    await send('x');
    const [first] = await receive({ VisibilityTimeout: 1 });
    clock.advance(1_000);
    const [second] = await receive();
    const remove = (ReceiptHandle?: string) => client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
    await remove(first?.ReceiptHandle);
    expect(await counts()).toMatchObject({ ApproximateNumberOfMessagesNotVisible: '1' });
    await remove(second?.ReceiptHandle);
    expect(await counts()).toMatchObject({ ApproximateNumberOfMessagesNotVisible: '0' });
    await expect(remove('bm9uc2Vuc2U=')).rejects.toMatchObject({ name: 'ReceiptHandleIsInvalid' });
  });

  it('serves message groups in turn, oldest message first, so that a busy tenant does not block others', async () => {
    for (let n = 0; n < 8; n++) await send(`noisy ${n}`, { MessageGroupId: 'noisy' });
    await send('quiet 0', { MessageGroupId: 'quiet' });
    await send('calm 0', { MessageGroupId: 'calm' });
    const first = await bodies({ MaxNumberOfMessages: 4 });
    expect(new Set(first)).toEqual(new Set(['noisy 0', 'quiet 0', 'calm 0', 'noisy 1']));
    await send('quiet 1', { MessageGroupId: 'quiet' });
    expect(await bodies({ MaxNumberOfMessages: 2 })).toEqual(['quiet 1', 'noisy 2']);
    expect(await bodies({ MaxNumberOfMessages: 10 })).toEqual(['noisy 3', 'noisy 4', 'noisy 5', 'noisy 6', 'noisy 7']);
  });

  it('moves a message to the dead-letter queue after maxReceiveCount receives', async () => {
    await send('poison');
    for (let receives = 0; receives < 3; receives++) {
      expect(await bodies()).toEqual(['poison']);
      clock.advance(orders.visibilityTimeoutSeconds * 1000);
    }
    expect(await bodies()).toEqual([]);
    expect(await counts(ordersDead.url)).toMatchObject({ ApproximateNumberOfMessages: '1' });
    const [dead] = await receive({ QueueUrl: ordersDead.url, MessageSystemAttributeNames: ['All'] });
    expect(dead).toMatchObject({ Body: 'poison', Attributes: { ApproximateReceiveCount: '1' } });
  });

  it('delivers a delayed message after its delay, and deletes a message after its retention', async () => {
    await send('later', { DelaySeconds: 900 });
    expect(await counts()).toMatchObject({ ApproximateNumberOfMessagesDelayed: '1', ApproximateNumberOfMessages: '0' });
    clock.advance(900_000);
    expect(await bodies({ VisibilityTimeout: 0 })).toEqual(['later']);
    clock.advance(orders.retentionSeconds * 1000);
    expect(await bodies()).toEqual([]);
    expect(await counts()).toMatchObject({ ApproximateNumberOfMessages: '0' });
  });

  it('ends a long poll on a send, on a visibility timeout, or after its wait', async () => {
    // Called in process: each call waits before the next line runs.
    const poll = async () => {
      const { Messages = [] } = await sqs.call('ReceiveMessage', {
        QueueUrl,
        WaitTimeSeconds: 20,
        VisibilityTimeout: 10,
      });
      return (Messages as { Body: string }[]).map(({ Body }) => Body);
    };
    const bySend = poll();
    await send('sent');
    expect(await bySend).toEqual(['sent']);
    const byTimeout = poll();
    clock.advance(10_000);
    expect(await byTimeout).toEqual(['sent']);
    const byNothing = sqs.call('ReceiveMessage', { QueueUrl: ordersDead.url, WaitTimeSeconds: 20 });
    clock.advance(20_000);
    expect(await byNothing).toEqual({});
  });

  it('gives one message to one of many waiting receivers', async () => {
    const waiting = Array.from({ length: 5 }, () => sqs.call('ReceiveMessage', { QueueUrl, WaitTimeSeconds: 20 }));
    await send('only one');
    clock.advance(20_000);
    const received = (await Promise.all(waiting)).flatMap(({ Messages = [] }) => Messages);
    expect(received).toHaveLength(1);
  });

  it('refuses the requests that AWS refuses, with the same codes', async () => {
    const unknown = send('x', { QueueUrl: 'http://127.0.0.1/000000000000/nowhere' });
    await expect(unknown).rejects.toMatchObject({
      name: 'QueueDoesNotExist',
      Code: 'AWS.SimpleQueueService.NonExistentQueue',
    });
    const batch = (entries: { Id: string; MessageBody: string }[]) =>
      client.send(new SendMessageBatchCommand({ QueueUrl, Entries: entries }));
    const entry = (Id: string, MessageBody = 'x') => ({ Id, MessageBody });
    await expect(batch([])).rejects.toMatchObject({ name: 'EmptyBatchRequest' });
    await expect(batch([entry('a'), entry('a')])).rejects.toMatchObject({ name: 'BatchEntryIdsNotDistinct' });
    await expect(batch([entry('not valid')])).rejects.toMatchObject({ name: 'InvalidBatchEntryId' });
    const eleven = Array.from({ length: 11 }, (_, n) => entry(String(n)));
    await expect(batch(eleven)).rejects.toMatchObject({ name: 'TooManyEntriesInBatchRequest' });
    const halves = [entry('a', 'x'.repeat(MIB / 2)), entry('b', 'x'.repeat(MIB / 2 + 1))];
    await expect(batch(halves)).rejects.toMatchObject({ name: 'BatchRequestTooLong' });
    await send('x'.repeat(MIB));
    await expect(send('x'.repeat(MIB + 1))).rejects.toMatchObject({ name: 'InvalidParameterValue' });
    await expect(send('x', { DelaySeconds: 901 })).rejects.toMatchObject({ name: 'InvalidParameterValue' });
    await expect(send('\u0000')).rejects.toMatchObject({ name: 'InvalidMessageContents' });
  });

  it('returns a result for each entry of a batch', async () => {
    const Entries = [
      { Id: 'good', MessageBody: 'x' },
      { Id: 'bad', MessageBody: 'x', DelaySeconds: 1_000 },
    ];
    const { Successful, Failed } = await client.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
    expect(Successful?.map(({ Id }) => Id)).toEqual(['good']);
    expect(Failed).toMatchObject([{ Id: 'bad', SenderFault: true }]);
    expect(await counts()).toMatchObject({ ApproximateNumberOfMessages: '1' });
  });

  it('refuses an operation or a parameter that it does not support, by name', async () => {
    const purge = new PurgeQueueCommand({ QueueUrl });
    await expect(client.send(purge)).rejects.toThrow('does not support PurgeQueue');
    const attribute = { MessageAttributes: { kind: { DataType: 'String', StringValue: 'x' } } };
    await expect(send('x', attribute)).rejects.toThrow('does not support the parameter MessageAttributes');
    const Entries = [{ Id: 'a', MessageBody: 'x', ...attribute }];
    const batch = client.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
    await expect(batch).rejects.toThrow('does not support the parameter MessageAttributes');
  });

  it('finds every message by an index, so a message takes as long when thousands of others wait', () => {
    const prepared = vi.spyOn(DatabaseSync.prototype, 'prepare');
    const another = temporaryFolder();
    const opened = new LocalSqs({ dataFolder: another.path, clock, queues });
    const statements = prepared.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes(' messages'));
    prepared.mockRestore();
    opened.close();
    const database = new DatabaseSync(join(another.path, 'sqs.sqlite'));
    const steps = (sql: string) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => String(detail));
    const plans = statements.map((sql) => ({ sql, steps: steps(sql) }));
    expect(plans.length).toBeGreaterThan(10);
    // SCAN reads every row, and a temporary B-tree sorts what an index has not sorted.
    expect(plans.filter((plan) => plan.steps.some((step) => /^SCAN|TEMP B-TREE/.test(step)))).toEqual([]);
    // It can fail.
    expect(steps('SELECT * FROM messages WHERE body = ?')).toEqual(['SCAN messages']);
    database.close();
    another.remove();
  });
});

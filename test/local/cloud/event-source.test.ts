import type { SQSEvent } from 'aws-lambda';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FunctionError } from '../../../local/aws/aws.ts';
import { LocalSqs } from '../../../local/cloud/sqs/sqs.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { type EventSource, type EventSourceOptions, startEventSource } from '../../../local/lambda/event-source.ts';
import { orders, ordersDead, queues } from './queues.ts';
import { temporaryFolder, until } from './wire.ts';

type Handler = (event: SQSEvent) => Promise<unknown> | unknown;

describe('the SQS event source', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let clock: HostClock;
  let sqs: LocalSqs;
  let source: EventSource | undefined;
  let batches: string[][];

  beforeEach(() => {
    folder = temporaryFolder();
    clock = new HostClock(folder.path);
    sqs = new LocalSqs({ dataFolder: folder.path, clock, queues });
    batches = [];
  });
  afterEach(async () => {
    await source?.stop();
    sqs.close();
    clock.stop();
    folder.remove();
  });

  function start(handler: Handler, more: Partial<EventSourceOptions> = {}): void {
    source = startEventSource({
      sqs,
      clock,
      queueArn: orders.arn,
      functionArn: 'arn:aws:lambda:us-east-1:000000000000:function:worker',
      batchSize: 10,
      maximumConcurrency: 2,
      batchingWindowMs: 0,
      reportBatchItemFailures: true,
      checkAccess: () => {},
      onError: () => {},
      invoke: async (_arn, event) => {
        const records = (event as SQSEvent).Records;
        batches.push(records.map(({ body }) => body));
        return handler(event as SQSEvent);
      },
      ...more,
    });
  }
  const send = (...bodies: string[]) => {
    const Entries = bodies.map((MessageBody, index) => ({ Id: String(index), MessageBody }));
    return sqs.call('SendMessageBatch', { QueueUrl: orders.url, Entries });
  };
  const settled = async () => {
    // A message that was sent is with the function after this turn of the event loop.
    await new Promise((turn) => setImmediate(turn));
    await until(() => source?.idle() === true, 'the event source is idle');
  };
  const failing = (...bad: string[]) => ({
    handler: ({ Records }: SQSEvent) => ({
      batchItemFailures: Records.filter(({ body }) => bad.includes(body)).map(({ messageId }) => ({
        itemIdentifier: messageId,
      })),
    }),
  });
  const inFlight = () => sqs.counts(orders.arn).inFlight;

  it('gathers messages until its window ends or the batch is full', async () => {
    start(() => {}, { batchingWindowMs: 5_000, batchSize: 3 });
    await send('a');
    await send('b');
    await new Promise((turn) => setImmediate(turn));
    expect(batches).toEqual([]);
    await send('c', 'd');
    await until(() => batches.length === 1, 'a full batch is delivered');
    expect(batches).toEqual([['a', 'b', 'c']]);
    clock.advance(5_000);
    await until(() => batches.length === 2, 'the window ends');
    expect(batches[1]).toEqual(['d']);
  });

  it('passes events in the format of Lambda', async () => {
    const events: SQSEvent[] = [];
    start((event) => void events.push(event));
    await sqs.call('SendMessage', {
      QueueUrl: orders.url,
      MessageBody: 'hello',
      MessageGroupId: 'acme',
    });
    await settled();
    expect(events[0]?.Records).toEqual([
      {
        messageId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        receiptHandle: expect.any(String),
        body: 'hello',
        attributes: {
          ApproximateReceiveCount: '1',
          SentTimestamp: expect.stringMatching(/^\d{13}$/),
          SenderId: expect.any(String),
          ApproximateFirstReceiveTimestamp: expect.stringMatching(/^\d{13}$/),
          MessageGroupId: 'acme',
        },
        messageAttributes: {},
        md5OfBody: '5d41402abc4b2a76b9719d911017c592',
        eventSource: 'aws:sqs',
        eventSourceARN: orders.arn,
        awsRegion: 'us-east-1',
      },
    ]);
    expect(inFlight()).toBe(0);
  });

  it('reruns only the failures of a partially failed batch, after the visibility timeout', async () => {
    start(failing('b').handler);
    await send('a', 'b', 'c');
    await settled();
    expect(inFlight()).toBe(1);
    clock.advance(orders.visibilityTimeoutSeconds * 1000);
    await until(() => batches.length === 2, 'the second delivery');
    expect(batches).toEqual([['a', 'b', 'c'], ['b']]);
  });

  it.each([
    ['an unknown item', { batchItemFailures: [{ itemIdentifier: 'no-such-message' }] }],
    ['an empty item', { batchItemFailures: [{ itemIdentifier: '' }] }],
    ['a misspelt item', { batchItemFailures: [{ id: 'x' }] }],
    ['a list that is not one', { batchItemFailures: 'all' }],
    ['a result that is not an object', 'done'],
  ])('treats the whole batch as failed when the result names %s', async (_case, result) => {
    start(() => result);
    await send('a', 'b');
    await settled();
    expect(inFlight()).toBe(2);
  });

  it.each([
    ['null', null],
    ['nothing', undefined],
    ['an empty object', {}],
    ['a null list', { batchItemFailures: null }],
    ['an empty list', { batchItemFailures: [] }],
  ])('treats the whole batch as done when the result is %s', async (_case, result) => {
    start(() => result);
    await send('a', 'b');
    await settled();
    expect(sqs.counts(orders.arn)).toEqual({ ready: 0, inFlight: 0, delayed: 0 });
  });

  it('redelivers a batch whose function failed until the dead-letter queue takes it', async () => {
    start(() => {
      throw new FunctionError('Error', 'boom');
    });
    await send('poison');
    for (let delivery = 1; delivery <= 3; delivery++) {
      await until(() => batches.length === delivery, `delivery ${delivery}`);
      await settled();
      clock.advance(orders.visibilityTimeoutSeconds * 1000);
    }
    await until(() => sqs.counts(ordersDead.arn).ready === 1, 'the message is dead-lettered');
    expect(batches).toHaveLength(3);
  });

  it('runs at most maximumConcurrency invocations at a time, and leaves the other messages visible', async () => {
    let running = 0;
    let most = 0;
    const gates: (() => void)[] = [];
    const handler = async () => {
      most = Math.max(most, ++running);
      await new Promise<void>((open) => gates.push(open));
      running--;
    };
    start(handler, { batchSize: 1 });
    await send('1', '2', '3', '4', '5');
    await until(() => gates.length === 2, 'two invocations run');
    expect(sqs.counts(orders.arn)).toMatchObject({ ready: 3, inFlight: 2 });
    for (let done = 0; done < 5; done++) {
      await until(() => gates.length > 0, 'an invocation to finish');
      gates.shift()?.();
    }
    await settled();
    expect(most).toBe(2);
    expect(sqs.counts(orders.arn)).toMatchObject({ ready: 0, inFlight: 0 });
  });

  it('makes a message visible again that it received in the moment of its stop', async () => {
    start(() => null);
    const sent = send('received');
    const stopped = source?.stop();
    await Promise.all([sent, stopped]);
    expect(batches).toEqual([]);
    expect(sqs.counts(orders.arn)).toMatchObject({ ready: 1, inFlight: 0 });
  });

  it('waits for running invocations when it stops', async () => {
    const { promise, resolve } = Promise.withResolvers<null>();
    start(() => promise);
    await send('a');
    await until(() => batches.length === 1, 'the invocation runs');
    let stopped = false;
    const stopping = source?.stop().then(() => {
      stopped = true;
    });
    await new Promise((turn) => setImmediate(turn));
    expect(stopped).toBe(false);
    resolve(null);
    await stopping;
    expect(sqs.counts(orders.arn)).toMatchObject({ ready: 0, inFlight: 0 });
  });

  it('receives nothing while its role may not read the queue', async () => {
    let allowed = false;
    let refused = 0;
    const checkAccess = () => {
      if (!allowed) throw new Error('sqs:ReceiveMessage is not granted');
    };
    start(() => null, { checkAccess, onError: () => refused++ });
    await send('a');
    expect(refused).toBe(1);
    expect(batches).toEqual([]);
    allowed = true;
    clock.advance(5_000);
    await until(() => batches.length === 1, 'polling begins');
  });
});

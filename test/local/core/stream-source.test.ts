import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type StreamRecord, TableStreams } from '../../../local/dynamodb/table-stream.ts';
import { HostClock } from '../../../local/host/clock.ts';
import { parseFilters, passes } from '../../../local/lambda/event-filter.ts';
import { startStreamSource } from '../../../local/lambda/stream-source.ts';
import { resolveTemplate } from '../../../local/template/template.ts';
import { eventually } from '../harness/eventually.ts';
import { temporaryFolder } from './small-host.ts';
import { runsTable, template } from './small-template.ts';

const table = structuredClone(runsTable);
Object.assign(table.Runs?.Properties ?? {}, { StreamSpecification: { StreamViewType: 'NEW_IMAGE' } });
const stack = resolveTemplate(template(table), { stackName: 'Test' });
const runs = stack.resources.get('Runs');
const TableName = runs?.ref ?? '';
const streamArn = runs?.attributes.StreamArn ?? '';

const filters = parseFilters(
  { Filters: [{ Pattern: '{"eventName":["INSERT"],"dynamodb":{"Keys":{"sk":{"S":[{"prefix":"COMMIT#"}]}}}}' }] },
  'Test',
);
const put = (pk: string, sk: string) => ({
  TableName,
  Item: { pk: { S: pk }, sk: { S: sk }, doc: { S: `${pk} ${sk}` } },
  ConditionExpression: 'attribute_not_exists(#pk)',
  ExpressionAttributeNames: { '#pk': 'pk' },
});

let folder: ReturnType<typeof temporaryFolder>;
let streams: TableStreams;
let batches: string[][];
let errors: unknown[];
let givenUp: Record<string, unknown>[];
let answer: (records: StreamRecord[]) => unknown;
let source: { stop(): Promise<void> };

beforeEach(() => {
  folder = temporaryFolder();
  const clock = new HostClock(folder.path);
  streams = new TableStreams(stack, clock);
  [batches, errors, givenUp] = [[], [], []];
  answer = () => ({ batchItemFailures: [] });
  source = startStreamSource({
    ...{ streams, clock, streamArn, functionArn: 'arn:f', filters, batchSize: 10, bisect: true, retriesMax: 1 },
    ...{ recordAgeMaxMs: 60_000, reportBatchItemFailures: true, checkAccess: () => undefined },
    invoke: async (_arn, event) => {
      const { Records } = event as { Records: StreamRecord[] };
      batches.push(Records.map(({ dynamodb }) => String(dynamodb.Keys.sk?.S)));
      return answer(Records);
    },
    onFailure: async (body) => {
      givenUp.push(body);
    },
    onError: (error) => errors.push(error),
  });
});
afterEach(async () => {
  await source.stop();
  folder.remove();
});

const delivered = (count: number) =>
  eventually('delivered', async () => (batches.flat().length >= count ? batches : undefined), { withinMs: 10_000 });

describe('a stream as event source', () => {
  it('delivers new rows that pass the filter, of puts and transactions, in order and with their image', async () => {
    const images: unknown[] = [];
    answer = (records) => {
      images.push(...records.map(({ dynamodb }) => dynamodb.NewImage?.doc?.S));
      return undefined;
    };
    streams.observe('PutItem', put('RUN#1', 'COMMIT#1'));
    streams.observe('PutItem', put('RUN#1', 'STEP#1'));
    streams.observe('TransactWriteItems', {
      TransactItems: [
        { Put: put('RUN#1', 'RUN') },
        { Put: put('RUN#1', 'COMMIT#2') },
        { Delete: { TableName, Key: {} } },
      ],
    });
    streams.observe('UpdateItem', { TableName, Key: { pk: { S: 'RUN#1' }, sk: { S: 'COMMIT#1' } } });
    await delivered(2);
    expect(batches.flat()).toEqual(['COMMIT#1', 'COMMIT#2']);
    expect(images).toEqual(['RUN#1 COMMIT#1', 'RUN#1 COMMIT#2']);
  });

  it('halves a batch that fails, gives up only the row that keeps failing, and says so', async () => {
    answer = (records) => {
      if (records.some(({ dynamodb }) => dynamodb.Keys.sk?.S === 'COMMIT#3')) throw new Error('broken');
    };
    for (const seq of [1, 2, 3, 4]) streams.observe('PutItem', put('RUN#1', `COMMIT#${seq}`));
    await eventually('given up', async () => givenUp[0], { withinMs: 10_000 });
    await delivered(4);
    expect(givenUp).toMatchObject([
      { requestContext: { condition: 'RetryAttemptsExhausted' }, DDBStreamBatchInfo: { batchSize: 1 } },
    ]);
    const succeeded = batches.filter((batch) => !batch.includes('COMMIT#3')).flat();
    expect(succeeded).toEqual(expect.arrayContaining(['COMMIT#1', 'COMMIT#2', 'COMMIT#4']));
  });

  it('delivers again from the row that the function reports', async () => {
    let failed = false;
    answer = (records) => {
      const second = records.find(({ dynamodb }) => dynamodb.Keys.sk?.S === 'COMMIT#2');
      if (failed || !second) return undefined;
      failed = true;
      return { batchItemFailures: [{ itemIdentifier: second.dynamodb.SequenceNumber }] };
    };
    streams.observe('TransactWriteItems', {
      TransactItems: [1, 2, 3].map((seq) => ({ Put: put('RUN#1', `COMMIT#${seq}`) })),
    });
    await eventually('again', async () =>
      batches.flat().filter((sk) => sk === 'COMMIT#2').length > 1 ? true : undefined,
    );
    expect(batches.flat().filter((sk) => sk === 'COMMIT#1')).toHaveLength(1);
  });

  it('reports a put of which nobody knows whether the row is new', async () => {
    streams.observe('PutItem', { TableName, Item: put('RUN#1', 'COMMIT#1').Item });
    expect(String(errors[0])).toContain('put {"pk":{"S":"RUN#1"},"sk":{"S":"COMMIT#1"}} with attribute_not_exists(pk)');
  });
});

describe('a filter', () => {
  const passing = (pattern: object, record: unknown) =>
    passes(parseFilters({ Filters: [{ Pattern: JSON.stringify(pattern) }] }, 'Test'), record);

  it('needs every field, and one rule of each', () => {
    expect(passing({ a: ['x', 'y'], b: { c: [1] } }, { a: 'y', b: { c: 1 } })).toBe(true);
    expect(passing({ a: ['x'], b: { c: [1] } }, { a: 'x', b: {} })).toBe(false);
    expect(passing({ a: [{ prefix: 'OUT#' }, { suffix: '#9' }] }, { a: 'RUN#9' })).toBe(true);
    expect(passing({ a: [{ exists: false }] }, {})).toBe(true);
    expect(passing({ a: [{ 'anything-but': ['x'] }] }, { a: 'x' })).toBe(false);
    expect(passes([], { anything: 1 })).toBe(true);
  });

  it('with an unknown operator stops the start', () => {
    expect(() => parseFilters({ Filters: [{ Pattern: '{"a":[{"numeric":[">",1]}]}' }] }, 'Stream')).toThrow(
      'Stream: the local host does not support the filter operator numeric',
    );
  });
});

import { setTimeout as delay } from 'node:timers/promises';
import type { InvokeFunction } from '../aws/aws.ts';
import { isFields } from '../cloud/request-fields.ts';
import type { StreamRecord, TableStreams } from '../dynamodb/table-stream.ts';
import type { HostClock } from '../host/clock.ts';
import { type Pattern, passes } from './event-filter.ts';

export interface StreamSourceOptions {
  streams: TableStreams;
  clock: HostClock;
  streamArn: string;
  functionArn: string;
  filters: readonly Pattern[];
  batchSize: number;
  bisect: boolean;
  retriesMax: number;
  recordAgeMaxMs: number;
  reportBatchItemFailures: boolean;
  invoke: InvokeFunction;
  /** Throws if the function's role may not read the stream. */
  checkAccess: () => void;
  /** Receives what is known about records that were given up. */
  onFailure(body: Record<string, unknown>): Promise<void>;
  onError: (error: unknown) => void;
}

/** Lambda's pauses are longer. */
const RETRY_PAUSE_MS = { first: 50, max: 1_000 };

/** Lambda reads a stream four times a second. Here a watcher sees a record sooner, and most records of a short run are one batch. */
const READ_AFTER_MS = 30;

/**
 * A DynamoDB stream as event source: one shard, in order. A batch that fails is halved or sent again; after the last
 * attempt, or when it is too old, it goes to the destination for failures, and the next batch follows.
 */
export function startStreamSource(options: StreamSourceOptions): { stop(): Promise<void> } {
  const { streams, streamArn, filters, batchSize, onError } = options;
  const waiting: StreamRecord[] = [];
  const stopping = new AbortController();
  let wake: () => void = () => undefined;
  let running: Promise<void> | undefined;

  streams.read(streamArn, (record) => {
    if (!isWanted(filters, record, onError)) return;
    waiting.push(record);
    wake();
  });

  const work = async () => {
    while (!stopping.signal.aborted) {
      if (waiting.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      await delay(READ_AFTER_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
      await deliver(options, waiting.splice(0, batchSize), stopping.signal).catch(onError);
    }
  };
  running = work();
  return {
    async stop() {
      stopping.abort();
      wake();
      await running;
    },
  };
}

function isWanted(filters: readonly Pattern[], record: StreamRecord, onError: (error: unknown) => void): boolean {
  if (record.eventName !== undefined) return passes(filters, record);
  const couldPass = ['INSERT', 'MODIFY'].some((eventName) => passes(filters, { ...record, eventName }));
  if (couldPass) {
    const key = JSON.stringify(record.dynamodb.Keys);
    onError(new Error(`put ${key} with attribute_not_exists(pk): the local host does not know whether the row is new`));
  }
  return false;
}

async function deliver(options: StreamSourceOptions, batch: StreamRecord[], signal: AbortSignal): Promise<void> {
  const { clock, recordAgeMaxMs, retriesMax, bisect, onError } = options;
  let left = batch;
  for (let failures = 0; left.length > 0 && !signal.aborted; ) {
    const oldestMs = (left[0]?.dynamodb.ApproximateCreationDateTime ?? 0) * 1000;
    const isTooOld = clock.now() - oldestMs > recordAgeMaxMs;
    if (failures > retriesMax || isTooOld) {
      await options.onFailure(failedBatch(left, isTooOld ? 'RecordAgeExceeded' : 'RetryAttemptsExhausted'));
      return;
    }
    const failedFrom = await attempt(options, left).catch((error: unknown) => {
      onError(error);
      return 0;
    });
    if (failedFrom === undefined) return;
    if (failedFrom > 0) failures = 0;
    left = left.slice(failedFrom);
    failures += 1;
    if (bisect && left.length > 1) {
      const middle = Math.ceil(left.length / 2);
      await deliver(options, left.slice(0, middle), signal);
      return deliver(options, left.slice(middle), signal);
    }
    const pauseMs = Math.min(RETRY_PAUSE_MS.max, RETRY_PAUSE_MS.first * 2 ** failures);
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

/** The index of the first record that failed, or undefined. */
async function attempt(options: StreamSourceOptions, batch: StreamRecord[]): Promise<number | undefined> {
  options.checkAccess();
  const result = await options.invoke(options.functionArn, { Records: batch });
  if (!options.reportBatchItemFailures || !isFields(result)) return undefined;
  const failures = result.batchItemFailures;
  if (failures === undefined || (Array.isArray(failures) && failures.length === 0)) return undefined;
  const failed = [failures].flat().map((each) => (isFields(each) ? each.itemIdentifier : undefined));
  const indexes = failed.map((id) => batch.findIndex(({ dynamodb }) => dynamodb.SequenceNumber === id));
  // As Lambda does: everything from the first failure on is sent again; an unknown number fails the whole batch.
  return Math.max(0, Math.min(...indexes));
}

function failedBatch(batch: StreamRecord[], condition: string): Record<string, unknown> {
  const [first, last] = [batch[0], batch.at(-1)];
  return {
    requestContext: { condition, approximateInvokeCount: 1 },
    version: '1.0',
    DDBStreamBatchInfo: {
      streamArn: first?.eventSourceARN,
      startSequenceNumber: first?.dynamodb.SequenceNumber,
      endSequenceNumber: last?.dynamodb.SequenceNumber,
      batchSize: batch.length,
    },
  };
}

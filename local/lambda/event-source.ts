/**
 * An SQS event source mapping: takes batches from a queue and hands them to a function, at most `maximumConcurrency` at once.
 *
 * One loop receives for all of them: it takes a batch only when an invocation may start, so no message's visibility
 * timeout runs while it waits for a free slot.
 */
import { type InvokeFunction, REGION } from '../aws/aws.ts';
import { isFields } from '../cloud/request-fields.ts';
import { type MessageAttributes, md5 } from '../cloud/sqs/message-attributes.ts';
import { MAX_BATCH_ENTRIES, receiptHandle, systemAttributes } from '../cloud/sqs/protocol.ts';
import type { LocalSqs } from '../cloud/sqs/sqs.ts';
import type { StoredMessage } from '../cloud/sqs/store.ts';
import type { HostClock } from '../host/clock.ts';
import { longestChain } from './recursion.ts';

export interface EventSourceOptions {
  sqs: LocalSqs;
  clock: HostClock;
  queueArn: string;
  functionArn: string;
  batchSize: number;
  batchingWindowSeconds: number;
  maximumConcurrency: number;
  reportBatchItemFailures: boolean;
  invoke: InvokeFunction;
  /** Throws if the function's role may not read the queue; the mapping then asks again later, as Lambda does. */
  mayPoll?: () => void;
  /** Told why a batch stays in its queue. */
  onError?: (error: unknown) => void;
}

export interface EventSource {
  /** Takes nothing more; resolves when the running invocations have ended. */
  stop(): Promise<void>;
  /** True if no invocation runs and no message is on its way to one. */
  idle(): boolean;
}

const LONG_POLL_MS = 20_000;
const REFUSED_POLL_PAUSE_MS = 5_000;
/** Lambda's limit for a synchronous payload; a larger batch is split. */
const MAX_PAYLOAD_BYTES = 6 * 1024 * 1024;
/** What a record adds to its body: ids, receipt, attributes. */
const RECORD_OVERHEAD_BYTES = 1_024;

export function startEventSource(options: EventSourceOptions): EventSource {
  const { sqs, clock, queueArn, batchSize, batchingWindowSeconds, maximumConcurrency } = options;
  const onError = options.onError ?? ((error) => console.error(`event source of ${queueArn}:`, error));
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  let held = 0;

  const receive = (max: number, waitMs: number) =>
    sqs.receive(queueArn, { max, waitMs, signal: stopping.signal, onTaken: () => held++ });

  async function nextBatch(): Promise<StoredMessage[]> {
    const batch = await receive(Math.min(batchSize, MAX_BATCH_ENTRIES), LONG_POLL_MS);
    if (batch.length === 0) return batch;
    const closesAtMs = clock.now() + batchingWindowSeconds * 1000;
    while (batch.length < batchSize && clock.now() < closesAtMs && !stopping.signal.aborted) {
      const more = await receive(Math.min(batchSize - batch.length, MAX_BATCH_ENTRIES), closesAtMs - clock.now());
      batch.push(...more);
    }
    return batch;
  }

  function dispatch(batch: StoredMessage[]): void {
    for (const part of splitByPayload(batch)) {
      const invocation = deliver(options, part)
        .catch(onError)
        .finally(() => running.delete(invocation));
      running.add(invocation);
    }
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (running.size >= maximumConcurrency) {
        await Promise.race(running);
        continue;
      }
      try {
        options.mayPoll?.();
      } catch (error) {
        onError(error);
        await pause(clock, REFUSED_POLL_PAUSE_MS, stopping.signal);
        continue;
      }
      const batch = await nextBatch();
      if (stopping.signal.aborted) sqs.release(batch);
      else dispatch(batch);
      held = 0;
    }
  }

  const polling = loop().catch(onError);
  return {
    async stop() {
      stopping.abort();
      await polling;
      await Promise.all(running);
    },
    idle: () => held === 0 && running.size === 0,
  };
}

async function deliver(options: EventSourceOptions, batch: StoredMessage[]): Promise<void> {
  const event = { Records: batch.map((message) => record(message, options.queueArn)) };
  // A rejection leaves the whole batch hidden until its visibility timeout, which is the retry delay.
  const answer = await options.invoke(
    options.functionArn,
    event,
    longestChain(batch.map(({ traceHeader }) => traceHeader)),
  );
  const failed = options.reportBatchItemFailures ? failedIds(answer, batch) : new Set<string>();
  const done = batch.filter(({ messageId }) => !failed.has(messageId));
  if (done.length > 0) options.sqs.deleteReceived(done);
}

/** Lambda's reading of a partial batch response: whatever it cannot understand means that everything failed. */
function failedIds(answer: unknown, batch: StoredMessage[]): Set<string> {
  const all = new Set(batch.map(({ messageId }) => messageId));
  if (answer === null || answer === undefined) return new Set();
  if (!isFields(answer)) return all;
  const failures = answer.batchItemFailures ?? [];
  if (!Array.isArray(failures)) return all;
  const ids = failures.map((failure: unknown) => (isFields(failure) ? failure.itemIdentifier : undefined));
  const known = ids.filter((id): id is string => typeof id === 'string' && all.has(id));
  return known.length === ids.length ? new Set(known) : all;
}

function record(message: StoredMessage, queueArn: string) {
  return {
    messageId: message.messageId,
    receiptHandle: receiptHandle(message),
    body: message.body,
    attributes: systemAttributes(message),
    messageAttributes: message.attributes === null ? {} : lambdaAttributes(JSON.parse(message.attributes)),
    md5OfBody: md5(message.body),
    eventSource: 'aws:sqs',
    eventSourceARN: queueArn,
    awsRegion: REGION,
  };
}

/** Lambda's spelling of SQS's message attributes. */
function lambdaAttributes(attributes: MessageAttributes) {
  const entries = Object.entries(attributes).map(([name, { DataType, StringValue, BinaryValue }]) => [
    name,
    {
      ...(StringValue === undefined ? {} : { stringValue: StringValue }),
      ...(BinaryValue === undefined ? {} : { binaryValue: BinaryValue }),
      stringListValues: [],
      binaryListValues: [],
      dataType: DataType,
    },
  ]);
  return Object.fromEntries(entries);
}

function splitByPayload(batch: StoredMessage[]): StoredMessage[][] {
  const parts: StoredMessage[][] = [];
  let bytes = 0;
  for (const message of batch) {
    const size = Buffer.byteLength(message.body) + (message.attributes?.length ?? 0) + RECORD_OVERHEAD_BYTES;
    const last = parts.at(-1);
    if (last !== undefined && bytes + size <= MAX_PAYLOAD_BYTES) last.push(message);
    else {
      parts.push([message]);
      bytes = 0;
    }
    bytes += size;
  }
  return parts;
}

function pause(clock: HostClock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.at(clock.now() + ms, end);
    signal.addEventListener('abort', end);
  });
}

/**
 * An SQS event source mapping: receives batches from a queue and passes them to a function, with at most
 * `maximumConcurrency` invocations at a time.
 *
 * One loop receives for all invocations. It receives only when an invocation may start, so that the visibility timeout of a
 * message does not run while the message waits for a free invocation.
 */
import { type InvokeFunction, REGION } from '../aws/aws.ts';
import { isFields } from '../cloud/request-fields.ts';
import { md5, receiptHandle, systemAttributes } from '../cloud/sqs/protocol.ts';
import type { LocalSqs } from '../cloud/sqs/sqs.ts';
import type { StoredMessage } from '../cloud/sqs/store.ts';
import type { HostClock } from '../host/clock.ts';
import { longestChain } from './recursion.ts';

export interface EventSourceOptions {
  sqs: LocalSqs;
  clock: HostClock;
  queueArn: string;
  functionArn: string;
  /** At most 10: the queue returns no more at once. */
  batchSize: number;
  maximumConcurrency: number;
  /** How long a batch that is not full waits for further messages. */
  batchingWindowMs: number;
  reportBatchItemFailures: boolean;
  invoke: InvokeFunction;
  /** Throws if the function's role may not read the queue. The loop then checks again later, as Lambda does. */
  checkAccess: () => void;
  /** Called with the reason why a batch stays in its queue. */
  onError: (error: unknown) => void;
}

export interface EventSource {
  /** Receives nothing more. Resolves when the running invocations have ended. */
  stop(): Promise<void>;
  /** True if no invocation runs. */
  idle(): boolean;
}

const LONG_POLL_MS = 20_000;
const ACCESS_DENIED_PAUSE_MS = 5_000;

export function startEventSource(options: EventSourceOptions): EventSource {
  const { sqs, clock, queueArn, batchSize, maximumConcurrency, batchingWindowMs, onError } = options;
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  async function receiveLoop(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (running.size >= maximumConcurrency) {
        await Promise.race(running);
        continue;
      }
      try {
        options.checkAccess();
      } catch (error) {
        onError(error);
        await pause(clock, ACCESS_DENIED_PAUSE_MS, stopping.signal);
        continue;
      }
      const batch = await sqs.receive(queueArn, { max: batchSize, waitMs: LONG_POLL_MS, signal: stopping.signal });
      if (batch.length === 0) continue;
      const invokedAt = clock.now() + batchingWindowMs;
      while (batch.length < batchSize && clock.now() < invokedAt && !stopping.signal.aborted) {
        const [max, waitMs] = [batchSize - batch.length, invokedAt - clock.now()];
        batch.push(...(await sqs.receive(queueArn, { max, waitMs, signal: stopping.signal })));
      }
      if (stopping.signal.aborted) {
        sqs.release(batch);
        continue;
      }
      const invocation = deliver(options, batch)
        .catch(onError)
        .finally(() => running.delete(invocation));
      running.add(invocation);
    }
  }

  const receiving = receiveLoop().catch(onError);
  return {
    async stop() {
      stopping.abort();
      await receiving;
      await Promise.all(running);
    },
    idle: () => running.size === 0,
  };
}

async function deliver(options: EventSourceOptions, batch: StoredMessage[]): Promise<void> {
  const event = { Records: batch.map((message) => record(message, options.queueArn)) };
  // If this rejects, the whole batch stays hidden until its visibility timeout and is then received again.
  const result = await options.invoke(
    options.functionArn,
    event,
    longestChain(batch.map(({ traceHeader }) => traceHeader)),
  );
  const failed = options.reportBatchItemFailures ? failedIds(result, batch) : new Set<string>();
  const done = batch.filter(({ messageId }) => !failed.has(messageId));
  if (done.length > 0) options.sqs.deleteReceived(done);
}

/** Reads a partial batch response as Lambda does: a malformed one means that the whole batch failed. */
function failedIds(result: unknown, batch: StoredMessage[]): Set<string> {
  const all = new Set(batch.map(({ messageId }) => messageId));
  if (result === null || result === undefined) return new Set();
  if (!isFields(result)) return all;
  const failures = result.batchItemFailures ?? [];
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
    messageAttributes: {},
    md5OfBody: md5(message.body),
    eventSource: 'aws:sqs',
    eventSourceARN: queueArn,
    awsRegion: REGION,
  };
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

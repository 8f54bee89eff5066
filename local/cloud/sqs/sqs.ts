/**
 * Standard SQS queues in one SQLite file.
 *
 *   send ──► ready ──receive──► hidden ──delete──► gone
 *              ▲                  │ visibility timeout
 *              ├──────────────────┤ received fewer than maxReceiveCount times
 *   delay ─────┘                  └─────────► ready in the dead-letter queue
 *
 * A receiver that finds no message waits. A send serves waiting receivers in their order, and one timer per queue serves
 * them when the next hidden message becomes visible. Nothing polls.
 */
import { randomUUID } from 'node:crypto';
import { AwsError, type JsonService } from '../../aws/aws.ts';
import type { HostClock, Timer } from '../../host/clock.ts';
import { type Fields, findOperation, type Operation } from '../request-fields.ts';
import {
  batchEntries,
  failedEntry,
  MAX_BATCH_ENTRIES,
  MAX_MESSAGE_BYTES,
  MESSAGE_FIELDS,
  newMessage,
  parseReceipt,
  read,
  receivedMessage,
  tooLong,
} from './protocol.ts';
import { type QueueTimeRules, SqsStore, type StoredMessage } from './store.ts';

export interface QueueDefinition {
  logicalId: string;
  name: string;
  url: string;
  arn: string;
  visibilityTimeoutSeconds: number;
  delaySeconds: number;
  retentionSeconds: number;
  redrive?: { deadLetterArn: string; maxReceiveCount: number };
}

interface ReceiveRequest {
  max: number;
  waitMs: number;
  visibilityMs: number;
  signal?: AbortSignal;
}

const MAX_WAIT_SECONDS = 20;
const MAX_VISIBILITY_SECONDS = 43_200;

interface WaitingReceiver {
  request: ReceiveRequest;
  resolve(messages: StoredMessage[]): void;
}

interface Queue extends QueueDefinition {
  rules: QueueTimeRules;
  waiting: Set<WaitingReceiver>;
  nextVisible?: Timer;
  soon?: NodeJS.Immediate;
}

type RunOperation = (queue: Queue, input: Fields, traceHeader?: string) => Promise<Fields> | Fields;

export class LocalSqs implements JsonService {
  readonly #clock: HostClock;
  readonly #store: SqsStore;
  readonly #queues = new Map<string, Queue>();
  readonly #operations: Record<string, Operation<RunOperation>> = {
    SendMessage: [['QueueUrl', ...MESSAGE_FIELDS], (queue, input, trace) => this.#send(queue, input, trace)],
    SendMessageBatch: [['QueueUrl', 'Entries'], (queue, input, trace) => this.#sendBatch(queue, input, trace)],
    ReceiveMessage: [
      ['QueueUrl', 'MaxNumberOfMessages', 'WaitTimeSeconds', 'VisibilityTimeout', 'MessageSystemAttributeNames'],
      (queue, input) => this.#receive(queue, input),
    ],
    DeleteMessage: [['QueueUrl', 'ReceiptHandle'], (queue, input) => this.#delete(queue, input)],
    ChangeMessageVisibilityBatch: [['QueueUrl', 'Entries'], (queue, input) => this.#changeVisibility(queue, input)],
    GetQueueAttributes: [['QueueUrl', 'AttributeNames'], (queue, input) => this.#attributes(queue, input)],
  };

  constructor({ dataFolder, clock, queues }: { dataFolder: string; clock: HostClock; queues: QueueDefinition[] }) {
    this.#clock = clock;
    this.#store = new SqsStore(dataFolder);
    const nameOf = (arn: string) => queues.find((queue) => queue.arn === arn)?.name;
    for (const queue of queues)
      this.#queues.set(queue.name, { ...queue, ...timeRules(queue, nameOf), waiting: new Set() });
  }

  async call(operation: string, input: Fields, traceHeader?: string): Promise<Fields> {
    const run = findOperation('SQS', this.#operations, operation, input);
    // By the last part of the path: a stored URL may contain the port of an earlier start.
    return run(this.#named(read.text(input, 'QueueUrl').split('/').at(-1) ?? ''), input, traceHeader);
  }

  /** Receives for an event source, which runs in this process. */
  receive(queueArn: string, request: Omit<ReceiveRequest, 'visibilityMs'>): Promise<StoredMessage[]> {
    const queue = this.#withArn(queueArn);
    return this.#takeOrWait(queue, { ...request, visibilityMs: queue.visibilityTimeoutSeconds * 1000 });
  }

  /** Deletes the messages that an event source has processed, except those that were received again since. */
  deleteReceived(messages: StoredMessage[]): void {
    this.#store.delete(messages.map(({ queue, seq, receipt }) => ({ queue, seq, receipt: receipt ?? '' })));
  }

  /** Makes received messages visible again. */
  release(messages: StoredMessage[]): void {
    for (const { seq } of messages) this.#store.hideUntil(seq, this.#clock.now());
    for (const name of new Set(messages.map(({ queue }) => queue))) this.#serve(this.#named(name));
  }

  counts(queueArn: string): { ready: number; inFlight: number; delayed: number } {
    const queue = this.#withArn(queueArn);
    this.#settle(queue);
    return this.#store.count(queue.name);
  }

  /** What CloudWatch records of each queue once a minute. */
  *measured(): Iterable<{ queueName: string; visible: number; oldestSentMs: number | undefined }> {
    for (const queue of this.#queues.values()) {
      const { ready } = this.counts(queue.arn);
      yield { queueName: queue.name, visible: ready, oldestSentMs: this.#store.oldestSentMs(queue.name) };
    }
  }

  close(): void {
    for (const queue of this.#queues.values()) {
      queue.nextVisible?.cancel();
      clearImmediate(queue.soon);
      for (const receiver of queue.waiting) receiver.resolve([]);
    }
    this.#store.close();
  }

  #send(queue: Queue, input: Fields, traceHeader?: string): Fields {
    const { message, reply, bytes } = newMessage(queue, input, this.#clock.now(), traceHeader);
    if (bytes > MAX_MESSAGE_BYTES) throw tooLong(bytes);
    this.#store.add([message], this.#clock.now());
    this.#serveSoon(queue);
    return reply;
  }

  #sendBatch(queue: Queue, input: Fields, traceHeader?: string): Fields {
    const entries = batchEntries(input, MESSAGE_FIELDS);
    const Failed: Fields[] = [];
    const accepted: (ReturnType<typeof newMessage> & { Id: unknown })[] = [];
    for (const entry of entries) {
      try {
        accepted.push({ Id: entry.Id, ...newMessage(queue, entry, this.#clock.now(), traceHeader) });
      } catch (error) {
        Failed.push(failedEntry(entry, error));
      }
    }
    const bytes = accepted.reduce((sum, entry) => sum + entry.bytes, 0);
    if (bytes > MAX_MESSAGE_BYTES) {
      throw new AwsError(
        'BatchRequestTooLong',
        `Batch requests cannot be longer than ${MAX_MESSAGE_BYTES} bytes. You have sent ${bytes} bytes.`,
      );
    }
    if (accepted.length > 0) {
      this.#store.add(
        accepted.map(({ message }) => message),
        this.#clock.now(),
      );
    }
    this.#serveSoon(queue);
    return { Successful: accepted.map(({ Id, reply }) => ({ Id, ...reply })), Failed };
  }

  async #receive(queue: Queue, input: Fields): Promise<Fields> {
    const max = read.integer(input, 'MaxNumberOfMessages', { min: 1, max: MAX_BATCH_ENTRIES }) ?? 1;
    const waitSeconds = read.integer(input, 'WaitTimeSeconds', { min: 0, max: MAX_WAIT_SECONDS }) ?? 0;
    const visibility = read.integer(input, 'VisibilityTimeout', { min: 0, max: MAX_VISIBILITY_SECONDS });
    const visibilityMs = (visibility ?? queue.visibilityTimeoutSeconds) * 1000;
    const attributeNames = read.texts(input, 'MessageSystemAttributeNames');
    const messages = await this.#takeOrWait(queue, { max, waitMs: waitSeconds * 1000, visibilityMs });
    return messages.length === 0
      ? {}
      : { Messages: messages.map((message) => receivedMessage(message, attributeNames)) };
  }

  #takeOrWait(queue: Queue, request: ReceiveRequest): Promise<StoredMessage[]> {
    // Receivers that already wait come first, so that a busy receiver cannot starve them.
    if (queue.waiting.size > 0) this.#serve(queue);
    const taken = this.#take(queue, request);
    if (taken.length > 0 || request.waitMs === 0 || request.signal?.aborted) return Promise.resolve(taken);
    return new Promise((resolve) => {
      const leave = () => receiver.resolve([]);
      const timer = this.#clock.at(this.#clock.now() + request.waitMs, leave);
      const receiver: WaitingReceiver = {
        request,
        resolve: (messages) => {
          queue.waiting.delete(receiver);
          timer.cancel();
          request.signal?.removeEventListener('abort', leave);
          resolve(messages);
        },
      };
      queue.waiting.add(receiver);
      request.signal?.addEventListener('abort', leave);
      this.#serve(queue);
    });
  }

  #take(queue: Queue, { max, visibilityMs }: ReceiveRequest): StoredMessage[] {
    const { taken, deadLettered } = this.#store.take(queue.rules, max, visibilityMs, this.#clock.now(), randomUUID);
    if (deadLettered > 0) this.#serveDeadLetters(queue);
    return taken;
  }

  /** After the reply to the sender, and once for all messages that are sent at the same time. */
  #serveSoon(queue: Queue): void {
    queue.soon ??= setImmediate(() => {
      delete queue.soon;
      this.#serve(queue);
    });
  }

  /** Gives ready messages to waiting receivers, then sets the timer for the next hidden message. */
  #serve(queue: Queue): void {
    for (const receiver of queue.waiting) {
      const messages = this.#take(queue, receiver.request);
      if (messages.length === 0) break;
      receiver.resolve(messages);
    }
    queue.nextVisible?.cancel();
    if (queue.waiting.size === 0) return;
    const atMs = this.#store.nextVisibleMs(queue.name);
    if (atMs !== undefined) queue.nextVisible = this.#clock.at(atMs, () => this.#serve(queue));
  }

  #settle(queue: Queue): void {
    if (this.#store.settle(queue.rules, this.#clock.now()) > 0) this.#serveDeadLetters(queue);
  }

  #serveDeadLetters({ rules }: Queue): void {
    if (rules.redrive !== undefined) this.#serve(this.#named(rules.redrive.deadLetterQueue));
  }

  #delete(queue: Queue, input: Fields): Fields {
    // As in AWS, the receipt of an earlier receive deletes nothing and is not an error.
    this.#store.delete([{ queue: queue.name, ...parseReceipt(queue, read.text(input, 'ReceiptHandle')) }]);
    return {};
  }

  #changeVisibility(queue: Queue, input: Fields): Fields {
    const Successful: Fields[] = [];
    const Failed: Fields[] = [];
    for (const entry of batchEntries(input, ['ReceiptHandle', 'VisibilityTimeout'])) {
      try {
        this.#changeVisibilityOf(queue, entry);
        Successful.push({ Id: entry.Id });
      } catch (error) {
        Failed.push(failedEntry(entry, error));
      }
    }
    this.#serve(queue);
    return { Successful, Failed };
  }

  #changeVisibilityOf(queue: Queue, entry: Fields): void {
    const { seq, receipt } = parseReceipt(queue, read.text(entry, 'ReceiptHandle'));
    const seconds = read.integer(entry, 'VisibilityTimeout', { min: 0, max: MAX_VISIBILITY_SECONDS });
    if (seconds === undefined) throw new AwsError('MissingParameter', 'The request must contain VisibilityTimeout.');
    const message = this.#store.find(queue.name, seq);
    if (message?.receipt !== receipt) {
      throw new AwsError(
        'InvalidParameterValue',
        'Reason: Message does not exist or is not available for visibility timeout change.',
      );
    }
    const now = this.#clock.now();
    if (message.ready === 1 || message.visibleMs <= now) {
      throw new AwsError('MessageNotInflight', 'The message referred to is not in flight.');
    }
    this.#store.hideUntil(seq, now + seconds * 1000);
  }

  #attributes(queue: Queue, input: Fields): Fields {
    const { ready, inFlight, delayed } = this.counts(queue.arn);
    const counts: Record<string, number> = {
      ApproximateNumberOfMessages: ready,
      ApproximateNumberOfMessagesNotVisible: inFlight,
      ApproximateNumberOfMessagesDelayed: delayed,
    };
    const wanted = read.texts(input, 'AttributeNames').map((name) => {
      if (counts[name] === undefined) throw new AwsError('InvalidAttributeName', `Unknown Attribute ${name}.`);
      return [name, String(counts[name])];
    });
    return { Attributes: Object.fromEntries(wanted) };
  }

  #named(name: string): Queue {
    const queue = this.#queues.get(name);
    if (queue === undefined) throw new AwsError('QueueDoesNotExist', 'The specified queue does not exist.');
    return queue;
  }

  #withArn(arn: string): Queue {
    const queue = [...this.#queues.values()].find((candidate) => candidate.arn === arn);
    if (queue === undefined) {
      throw new AwsError('ResourceNotFoundException', `The resource that you specified for ${arn} doesn't exist.`);
    }
    return queue;
  }
}

function timeRules(queue: QueueDefinition, nameOf: (arn: string) => string | undefined): { rules: QueueTimeRules } {
  const rules: QueueTimeRules = { queue: queue.name, retentionMs: queue.retentionSeconds * 1000 };
  if (queue.redrive === undefined) return { rules };
  const deadLetterQueue = nameOf(queue.redrive.deadLetterArn);
  if (deadLetterQueue === undefined) {
    throw new Error(`${queue.logicalId}: its dead-letter queue ${queue.redrive.deadLetterArn} is not in the template`);
  }
  const { maxReceiveCount } = queue.redrive;
  return { rules: { ...rules, redrive: { deadLetterQueue, maxReceiveCount } } };
}

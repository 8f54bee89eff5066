/**
 * Standard SQS queues on one sqlite file.
 *
 *   send ──► ready ──receive──► hidden ──delete──► gone
 *              ▲                  │ visibility timeout
 *              ├──────────────────┤ received fewer than maxReceiveCount times
 *   delay ─────┘                  └─────────► ready in the dead-letter queue
 *
 * A receiver that finds nothing parks; a send serves parked receivers in their order, and one clock timer per queue
 * serves them when the next hidden message is due. Nothing polls.
 */
import { randomUUID } from 'node:crypto';
import { AwsError, type JsonService } from '../../aws/aws.ts';
import type { HostClock, Timer } from '../../host/clock.ts';
import { type Fields, operationOf } from '../request-fields.ts';
import {
  batchEntries,
  eachEntry,
  failedEntry,
  MAX_BATCH_ENTRIES,
  MAX_MESSAGE_BYTES,
  newMessage,
  onTheWire,
  parseReceipt,
  read,
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

export interface ReceiveRequest {
  max: number;
  waitMs: number;
  visibilityMs: number;
  signal?: AbortSignal;
  /** Called in the same tick in which messages leave the queue, before the promise resolves. */
  onTaken?: () => void;
}

const MAX_WAIT_SECONDS = 20;
const MAX_VISIBILITY_SECONDS = 43_200;
const MAX_MOVE_TASKS_LISTED = 10;
const MAX_MOVES_PER_SECOND = 500;

interface ParkedReceiver {
  request: ReceiveRequest;
  resolve(messages: StoredMessage[]): void;
}

interface Queue extends QueueDefinition {
  rules: QueueTimeRules;
  parked: Set<ParkedReceiver>;
  nextVisible?: Timer;
}

type Operation = (queue: Queue, input: Fields, traceHeader?: string) => Promise<Fields> | Fields;

export class LocalSqs implements JsonService {
  readonly #clock: HostClock;
  readonly #store: SqsStore;
  readonly #queues = new Map<string, Queue>();
  readonly #operations: Record<string, Operation> = {
    SendMessage: (queue, input, trace) => this.#send(queue, input, trace),
    SendMessageBatch: (queue, input, trace) => this.#sendBatch(queue, input, trace),
    ReceiveMessage: (queue, input) => this.#receive(queue, input),
    DeleteMessage: (queue, input) => this.#delete(queue, input),
    DeleteMessageBatch: (queue, input) => eachEntry(input, (entry) => this.#delete(queue, entry)),
    ChangeMessageVisibility: (queue, input) => this.#changeVisibility(queue, input),
    ChangeMessageVisibilityBatch: (queue, input) => eachEntry(input, (entry) => this.#changeVisibility(queue, entry)),
    GetQueueAttributes: (queue, input) => this.#attributes(queue, input),
    PurgeQueue: (queue) => this.#purge(queue),
  };

  constructor({ dataFolder, clock, queues }: { dataFolder: string; clock: HostClock; queues: QueueDefinition[] }) {
    this.#clock = clock;
    this.#store = new SqsStore(dataFolder);
    const nameOf = (arn: string) => queues.find((queue) => queue.arn === arn)?.name;
    for (const queue of queues)
      this.#queues.set(queue.name, { ...queue, ...timeRules(queue, nameOf), parked: new Set() });
  }

  async call(operation: string, input: Fields, traceHeader?: string): Promise<Fields> {
    if (operation === 'GetQueueUrl') return { QueueUrl: this.#named(read.text(input, 'QueueName')).url };
    if (operation === 'ListQueues') return { QueueUrls: [...this.#queues.values()].map(({ url }) => url) };
    if (operation === 'StartMessageMoveTask') return this.#startMove(input);
    if (operation === 'ListMessageMoveTasks') return this.#listMoves(input);
    const run = operationOf('SQS', this.#operations, operation);
    // By the last part of the path: a stored URL may carry the port of an earlier start.
    return run(this.#named(read.text(input, 'QueueUrl').split('/').at(-1) ?? ''), input, traceHeader);
  }

  /** For the event source, which polls inside the process. */
  receive(queueArn: string, request: Omit<ReceiveRequest, 'visibilityMs'>): Promise<StoredMessage[]> {
    const queue = this.#withArn(queueArn);
    return this.#takeOrPark(queue, { ...request, visibilityMs: queue.visibilityTimeoutSeconds * 1000 });
  }

  /** Deletes what the event source processed; a message received again meanwhile stays. */
  deleteReceived(messages: StoredMessage[]): void {
    this.#store.delete(messages.map(({ queue, seq, receipt }) => ({ queue, seq, receipt: receipt ?? '' })));
  }

  /** Gives back messages that were received but never handed to anyone. */
  release(messages: StoredMessage[]): void {
    for (const { seq } of messages) this.#store.hideUntil(seq, this.#clock.now());
    for (const name of new Set(messages.map(({ queue }) => queue))) this.#serve(this.#named(name));
  }

  counts(queueArn: string): { ready: number; inFlight: number; delayed: number } {
    const queue = this.#withArn(queueArn);
    this.#settle(queue);
    return this.#store.count(queue.name);
  }

  close(): void {
    for (const queue of this.#queues.values()) {
      queue.nextVisible?.cancel();
      for (const receiver of queue.parked) receiver.resolve([]);
    }
    this.#store.close();
  }

  #send(queue: Queue, input: Fields, traceHeader?: string): Fields {
    const { message, answer, bytes } = newMessage(queue, input, this.#clock.now(), traceHeader);
    if (bytes > MAX_MESSAGE_BYTES) throw tooLong(bytes);
    this.#store.add([message], this.#clock.now());
    this.#serve(queue);
    return answer;
  }

  #sendBatch(queue: Queue, input: Fields, traceHeader?: string): Fields {
    const entries = batchEntries(input);
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
    this.#serve(queue);
    return { Successful: accepted.map(({ Id, answer }) => ({ Id, ...answer })), Failed };
  }

  async #receive(queue: Queue, input: Fields): Promise<Fields> {
    const max = read.integer(input, 'MaxNumberOfMessages', { min: 1, max: MAX_BATCH_ENTRIES }) ?? 1;
    const waitSeconds = read.integer(input, 'WaitTimeSeconds', { min: 0, max: MAX_WAIT_SECONDS }) ?? 0;
    const visibility = read.integer(input, 'VisibilityTimeout', { min: 0, max: MAX_VISIBILITY_SECONDS });
    const visibilityMs = (visibility ?? queue.visibilityTimeoutSeconds) * 1000;
    const system = [...read.texts(input, 'AttributeNames'), ...read.texts(input, 'MessageSystemAttributeNames')];
    const wanted = { system, message: read.texts(input, 'MessageAttributeNames') };
    const messages = await this.#takeOrPark(queue, { max, waitMs: waitSeconds * 1000, visibilityMs });
    return messages.length === 0 ? {} : { Messages: messages.map((message) => onTheWire(message, wanted)) };
  }

  #takeOrPark(queue: Queue, request: ReceiveRequest): Promise<StoredMessage[]> {
    // Those parked earlier come first, or a busy receiver would starve them.
    if (queue.parked.size > 0) this.#serve(queue);
    const taken = this.#take(queue, request);
    if (taken.length > 0 || request.waitMs === 0 || request.signal?.aborted) return Promise.resolve(taken);
    return new Promise((resolve) => {
      const leave = () => receiver.resolve([]);
      const timer = this.#clock.at(this.#clock.now() + request.waitMs, leave);
      const receiver: ParkedReceiver = {
        request,
        resolve: (messages) => {
          queue.parked.delete(receiver);
          timer.cancel();
          request.signal?.removeEventListener('abort', leave);
          resolve(messages);
        },
      };
      queue.parked.add(receiver);
      request.signal?.addEventListener('abort', leave);
      this.#serve(queue);
    });
  }

  #take(queue: Queue, { max, visibilityMs, onTaken }: ReceiveRequest): StoredMessage[] {
    const receiptNow = () => randomUUID();
    const { taken, deadLettered } = this.#store.take(queue.rules, max, visibilityMs, this.#clock.now(), receiptNow);
    if (taken.length > 0) onTaken?.();
    if (deadLettered > 0) this.#serveDeadLetters(queue);
    return taken;
  }

  /** Hands ready messages to parked receivers, then sets the timer for those not ready yet. */
  #serve(queue: Queue): void {
    for (const receiver of queue.parked) {
      const messages = this.#take(queue, receiver.request);
      if (messages.length === 0) break;
      receiver.resolve(messages);
    }
    queue.nextVisible?.cancel();
    if (queue.parked.size === 0) return;
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
    // As in AWS, a receipt that a later receive has replaced deletes nothing and is no error.
    this.#store.delete([{ queue: queue.name, ...parseReceipt(queue, read.text(input, 'ReceiptHandle')) }]);
    return {};
  }

  #changeVisibility(queue: Queue, input: Fields): Fields {
    const { seq, receipt } = parseReceipt(queue, read.text(input, 'ReceiptHandle'));
    const seconds = read.integer(input, 'VisibilityTimeout', { min: 0, max: MAX_VISIBILITY_SECONDS });
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
    this.#serve(queue);
    return {};
  }

  #attributes(queue: Queue, input: Fields): Fields {
    const wanted = read.texts(input, 'AttributeNames');
    this.#settle(queue);
    const { ready, inFlight, delayed } = this.#store.count(queue.name);
    const all: Record<string, string> = {
      QueueArn: queue.arn,
      ApproximateNumberOfMessages: String(ready),
      ApproximateNumberOfMessagesNotVisible: String(inFlight),
      ApproximateNumberOfMessagesDelayed: String(delayed),
      VisibilityTimeout: String(queue.visibilityTimeoutSeconds),
      DelaySeconds: String(queue.delaySeconds),
      MessageRetentionPeriod: String(queue.retentionSeconds),
      MaximumMessageSize: String(MAX_MESSAGE_BYTES),
    };
    if (queue.redrive !== undefined) {
      const { deadLetterArn, maxReceiveCount } = queue.redrive;
      all.RedrivePolicy = JSON.stringify({ deadLetterTargetArn: deadLetterArn, maxReceiveCount });
    }
    const keep = Object.entries(all).filter(([name]) => wanted.includes('All') || wanted.includes(name));
    return keep.length === 0 ? {} : { Attributes: Object.fromEntries(keep) };
  }

  #purge(queue: Queue): Fields {
    this.#store.purge(queue.name);
    return {};
  }

  #startMove(input: Fields): Fields {
    const source = this.#source(input);
    read.integer(input, 'MaxNumberOfMessagesPerSecond', { min: 1, max: MAX_MOVES_PER_SECOND });
    const destinationArn = read.optionalText(input, 'DestinationArn') ?? null;
    const destination = destinationArn === null ? undefined : this.#withArn(destinationArn).name;
    this.#settle(source);
    const queueOf = (arn: string | null) => [...this.#queues.values()].find((queue) => queue.arn === arn)?.name;
    const task = this.#store.moveAll(
      source.name,
      { handle: randomUUID(), sourceArn: source.arn, destinationArn, startedMs: this.#clock.now() },
      ({ deadLetterSource }) => destination ?? queueOf(deadLetterSource),
      randomUUID,
    );
    for (const queue of this.#queues.values()) this.#serve(queue);
    return {
      TaskHandle: Buffer.from(JSON.stringify({ taskId: task.handle, sourceArn: source.arn })).toString('base64'),
    };
  }

  #listMoves(input: Fields): Fields {
    const limit = read.integer(input, 'MaxResults', { min: 1, max: MAX_MOVE_TASKS_LISTED }) ?? 1;
    const Results = this.#store.moveTasks(this.#source(input).arn, limit).map((task) => ({
      Status: task.status,
      SourceArn: task.sourceArn,
      ...(task.destinationArn === null ? {} : { DestinationArn: task.destinationArn }),
      ApproximateNumberOfMessagesMoved: task.moved,
      ApproximateNumberOfMessagesToMove: task.toMove,
      ...(task.failureReason === null ? {} : { FailureReason: task.failureReason }),
      StartedTimestamp: Math.round(task.startedMs),
    }));
    return { Results };
  }

  /** Only a dead-letter queue can be the source of a move. */
  #source(input: Fields): Queue {
    const source = this.#withArn(read.text(input, 'SourceArn'));
    const feeds = [...this.#queues.values()].some(({ redrive }) => redrive?.deadLetterArn === source.arn);
    if (!feeds) throw new AwsError('InvalidParameterValue', 'Source queue must be configured as a Dead Letter Queue.');
    return source;
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
  if (queue.name.endsWith('.fifo')) throw new Error(`${queue.logicalId}: the local host has no FIFO queues`);
  const rules: QueueTimeRules = { queue: queue.name, retentionMs: queue.retentionSeconds * 1000 };
  if (queue.redrive === undefined) return { rules };
  const deadLetterQueue = nameOf(queue.redrive.deadLetterArn);
  if (deadLetterQueue === undefined) {
    throw new Error(`${queue.logicalId}: its dead-letter queue ${queue.redrive.deadLetterArn} is not in the template`);
  }
  const { maxReceiveCount } = queue.redrive;
  return { rules: { ...rules, redrive: { deadLetterQueue, sourceArn: queue.arn, maxReceiveCount } } };
}

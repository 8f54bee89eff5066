import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import * as z from 'zod';
import { tryParseJson } from '../../entry/parse-json.ts';
import type { Clock } from '../../entry/ports.ts';
import type { DeadLetterSelection, QueueCount } from '../contract/operations.ts';
import type { QueueName } from '../queue-names.ts';
import type { DeadLetters, FoundLetters, StoredLetter } from './dead-letters.ts';

/** SQS returns at most this many messages at once, and accepts as many in a batch. */
const BATCH_MAX = 10;
/** The messages that one request reads from each queue: 30 calls take about one of the function's ten seconds. */
const MESSAGES_READ_MAX = 300;
/** Receiving ends after this time, so that the function has time to return what it has read. */
const READING_MAX_MS = 5_000;
/** A request hides the messages that it reads. If it fails, they are visible again after this time. */
const HIDDEN_SECONDS = 30;
/** Long polling queries all SQS servers: only then does an empty result mean that the queue is empty. */
const WAIT_SECONDS = 1;

export interface DeadLetterQueue {
  name: QueueName;
  url: string;
  /** The queue that its messages came from. */
  sourceUrl: string;
  /** How often a message is delivered before it becomes a dead letter. */
  attempts: number;
}

/**
 * SQS cannot select by tenant, so this reads all messages and returns those of other tenants at once. No message is lost:
 * it is deleted only after it was sent, and otherwise becomes visible again.
 */
export class SqsDeadLetters implements DeadLetters {
  readonly #client: SQSClient;
  readonly #queues: readonly DeadLetterQueue[];
  readonly #clock: Clock;

  constructor(client: SQSClient, queues: readonly DeadLetterQueue[], clock: Clock) {
    this.#client = client;
    this.#queues = queues;
    this.#clock = clock;
  }

  /** Reads only queues that have messages: reading an empty queue takes a second. */
  async counts(tenant: string): Promise<(QueueCount & { oldestAt?: string })[]> {
    return Promise.all(
      this.#queues.map(async (queue) => {
        const { visible, hidden } = await this.#sizeOf(queue);
        if (visible + hidden === 0) return { queue: queue.name, messages: 0, complete: true };
        const { letters, count } = await this.#each(queue, tenant, () => true, keep);
        const [oldest] = letters.map(({ sentAt }) => sentAt).sort();
        return { ...count, ...(oldest !== undefined && { oldestAt: oldest }) };
      }),
    );
  }

  list(tenant: string, selection: DeadLetterSelection): Promise<FoundLetters> {
    return this.#all(tenant, selection, keep);
  }

  redrive(tenant: string, selection: DeadLetterSelection): Promise<FoundLetters> {
    return this.#all(tenant, selection, async ({ url, sourceUrl }, { Body, Attributes, ReceiptHandle }) => {
      const MessageGroupId = Attributes?.MessageGroupId;
      await this.#client.send(new SendMessageCommand({ QueueUrl: sourceUrl, MessageBody: Body, MessageGroupId }));
      await this.#client.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle }));
      return true;
    });
  }

  async #all(tenant: string, { queue, ids, runId }: DeadLetterSelection, act: Act): Promise<FoundLetters> {
    const isSelected = (letter: StoredLetter) =>
      (ids === undefined || ids.includes(letter.id)) && (runId === undefined || letter.runId === runId);
    const queues = this.#queues.filter(({ name }) => queue === undefined || name === queue);
    const found = await Promise.all(queues.map((each) => this.#each(each, tenant, isSelected, act)));
    return { queues: found.map(({ count }) => count), letters: found.flatMap(({ letters }) => letters) };
  }

  /** Applies `act` to the selected messages of a tenant. A message that `act` does not remove returns to its queue. */
  async #each(queue: DeadLetterQueue, tenant: string, isSelected: (letter: StoredLetter) => boolean, act: Act) {
    const { messages, complete } = await this.#read(queue);
    const own = messages
      .filter((message) => tenantOf(message) === tenant)
      .map((message) => ({ message, letter: letterOf(queue, message) }))
      .filter(({ letter }) => isSelected(letter));
    const removed = new Set<Message>();
    try {
      for (let start = 0; start < own.length; start += BATCH_MAX) {
        const batch = own.slice(start, start + BATCH_MAX);
        await Promise.all(batch.map(async ({ message }) => (await act(queue, message)) && removed.add(message)));
      }
    } finally {
      await this.#return(
        queue,
        messages.filter((message) => !removed.has(message)),
      );
    }
    const count: QueueCount = { queue: queue.name, messages: own.length, complete };
    return { count, letters: own.map(({ letter }) => letter) };
  }

  async #sizeOf({ url }: DeadLetterQueue): Promise<{ visible: number; hidden: number }> {
    const { Attributes } = await this.#client.send(
      new GetQueueAttributesCommand({
        QueueUrl: url,
        AttributeNames: ['ApproximateNumberOfMessages', 'ApproximateNumberOfMessagesNotVisible'],
      }),
    );
    const { ApproximateNumberOfMessages: visible, ApproximateNumberOfMessagesNotVisible: hidden } = Attributes ?? {};
    return { visible: Number(visible ?? 0), hidden: Number(hidden ?? 0) };
  }

  /** Messages that another request has hidden at the moment are not read, so the result is not complete. */
  async #read(queue: DeadLetterQueue): Promise<{ messages: Message[]; complete: boolean }> {
    const { url } = queue;
    const { hidden } = await this.#sizeOf(queue);
    const messages: Message[] = [];
    const endsAtMs = this.#clock.now() + READING_MAX_MS;
    while (messages.length < MESSAGES_READ_MAX && this.#clock.now() < endsAtMs) {
      const { Messages = [] } = await this.#client.send(
        new ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: BATCH_MAX,
          VisibilityTimeout: HIDDEN_SECONDS,
          WaitTimeSeconds: WAIT_SECONDS,
          MessageSystemAttributeNames: ['MessageGroupId', 'SentTimestamp'],
        }),
      );
      if (Messages.length === 0) return { messages, complete: hidden === 0 };
      messages.push(...Messages);
    }
    return { messages, complete: false };
  }

  async #return({ url }: DeadLetterQueue, messages: readonly Message[]): Promise<void> {
    for (let start = 0; start < messages.length; start += BATCH_MAX) {
      const Entries = messages
        .slice(start, start + BATCH_MAX)
        .map(({ ReceiptHandle }, index) => ({ Id: String(index), ReceiptHandle, VisibilityTimeout: 0 }));
      await this.#client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl: url, Entries }));
    }
  }
}

type Act = (queue: DeadLetterQueue, message: Message) => Promise<boolean>;
const keep: Act = async () => false;

/** What a message without a kind asks for. */
const KINDS: Record<QueueName, string> = {
  steps: 'process_run',
  evidence: 'seal_evidence',
  approvals: 'publish_approval',
};

function letterOf(
  { name, attempts }: DeadLetterQueue,
  { MessageId = '', Body = '', Attributes }: Message,
): StoredLetter {
  const { runId, kind } = fieldsOf(Body);
  const sentAtMs = Number(Attributes?.SentTimestamp ?? 0);
  return {
    id: MessageId,
    queue: name,
    ...(runId !== undefined && { runId, kind: kind ?? KINDS[name] }),
    sentAt: new Date(sentAtMs).toISOString(),
    attempts,
  };
}

/** Every message has its tenant in the body. For a body that cannot be read, the message group is the tenant. */
const tenantOf = ({ Body = '', Attributes }: Message): string | undefined =>
  fieldsOf(Body).tenant ?? Attributes?.MessageGroupId;

const Fields = z.object({
  tenant: z.string().optional(),
  runId: z.string().optional(),
  kind: z.string().optional(),
});

/** A body of another version, or of another sender, may have anything in it. */
const fieldsOf = (body: string): z.infer<typeof Fields> => Fields.safeParse(tryParseJson(body)).data ?? {};

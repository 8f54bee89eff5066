import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { tryParseJson } from '../../entry/parse-json.ts';
import type { QueueCount } from '../contract/operations.ts';
import type { DeadLetters } from './dead-letters.ts';

/** SQS returns at most this many messages at once, and accepts as many in a batch. */
const BATCH_MAX = 10;
/** The messages that one request reads from each queue: 30 calls take about one of the function's ten seconds. */
const MESSAGES_READ_MAX = 300;
/** A request hides the messages that it reads. If it fails, they are visible again after this time. */
const HIDDEN_SECONDS = 30;
/** Long polling queries all SQS servers: only then does an empty result mean that the queue is empty. */
const WAIT_SECONDS = 1;

export interface DeadLetterQueue {
  name: string;
  url: string;
  /** The queue that its messages came from. */
  sourceUrl: string;
}

/**
 * SQS cannot select by tenant, so this reads all messages and returns those of other tenants at once. No message is lost:
 * it is deleted only after it was sent, and otherwise becomes visible again.
 */
export class SqsDeadLetters implements DeadLetters {
  readonly #client: SQSClient;
  readonly #queues: readonly DeadLetterQueue[];

  constructor(client: SQSClient, queues: readonly DeadLetterQueue[]) {
    this.#client = client;
    this.#queues = queues;
  }

  counts(tenant: string): Promise<QueueCount[]> {
    return this.#each(tenant, async () => false);
  }

  redrive(tenant: string): Promise<QueueCount[]> {
    return this.#each(tenant, async ({ url, sourceUrl }, { Body, Attributes, ReceiptHandle }) => {
      const MessageGroupId = Attributes?.MessageGroupId;
      await this.#client.send(new SendMessageCommand({ QueueUrl: sourceUrl, MessageBody: Body, MessageGroupId }));
      await this.#client.send(new DeleteMessageCommand({ QueueUrl: url, ReceiptHandle }));
      return true;
    });
  }

  /** Counts a tenant's messages and applies `act` to each. A message that `act` does not remove returns to its queue. */
  #each(tenant: string, act: (queue: DeadLetterQueue, message: Message) => Promise<boolean>): Promise<QueueCount[]> {
    return Promise.all(
      this.#queues.map(async (queue) => {
        const { messages, complete } = await this.#read(queue);
        const own = messages.filter((message) => tenantOf(message) === tenant);
        const removed = new Set<Message>();
        try {
          for (let start = 0; start < own.length; start += BATCH_MAX) {
            const batch = own.slice(start, start + BATCH_MAX);
            await Promise.all(batch.map(async (message) => (await act(queue, message)) && removed.add(message)));
          }
        } finally {
          await this.#return(
            queue,
            messages.filter((message) => !removed.has(message)),
          );
        }
        return { queue: queue.name, messages: own.length, complete };
      }),
    );
  }

  async #read({ url }: DeadLetterQueue): Promise<{ messages: Message[]; complete: boolean }> {
    const messages: Message[] = [];
    while (messages.length < MESSAGES_READ_MAX) {
      const { Messages = [] } = await this.#client.send(
        new ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: BATCH_MAX,
          VisibilityTimeout: HIDDEN_SECONDS,
          WaitTimeSeconds: WAIT_SECONDS,
          MessageSystemAttributeNames: ['MessageGroupId'],
        }),
      );
      if (Messages.length === 0) return { messages, complete: true };
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

/** Every message has its tenant in the body. For a body that cannot be read, the message group is the tenant. */
function tenantOf({ Body = '', Attributes }: Message): string | undefined {
  const body = tryParseJson(Body);
  const named = typeof body === 'object' && body !== null && 'tenant' in body ? body.tenant : undefined;
  return typeof named === 'string' ? named : Attributes?.MessageGroupId;
}

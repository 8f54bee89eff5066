import { SendMessageBatchCommand, SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { DELAY_MAX_MS, type StepMessage, type StepQueue } from './step-queue.ts';

export class SqsStepQueue implements StepQueue {
  readonly #client: SQSClient;
  readonly #queueUrl: string;

  constructor(client: SQSClient, queueUrl: string) {
    this.#client = client;
    this.#queueUrl = queueUrl;
  }

  async send(message: StepMessage, delayMs = 0): Promise<void> {
    await this.#client.send(
      new SendMessageCommand({
        QueueUrl: this.#queueUrl,
        MessageBody: JSON.stringify(message),
        // In a standard queue a group gives fairness, not order: a busy tenant does not delay the others.
        MessageGroupId: message.tenant,
        DelaySeconds: Math.ceil(Math.min(delayMs, DELAY_MAX_MS) / 1000),
      }),
    );
  }

  async sendTogether<Message extends StepMessage>(messages: readonly Message[]): Promise<Message[]> {
    if (messages.length === 0) return [];
    const { Failed = [] } = await this.#client.send(
      new SendMessageBatchCommand({
        QueueUrl: this.#queueUrl,
        Entries: messages.map(({ tenant, runId }, index) => ({
          Id: String(index),
          MessageBody: JSON.stringify({ tenant, runId }),
          MessageGroupId: tenant,
        })),
      }),
    );
    return Failed.flatMap(({ Id }) => messages[Number(Id)] ?? []);
  }
}

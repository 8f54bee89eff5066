import { SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { StepMessage, StepQueue } from './step-queue.ts';

const SQS_DELAY_MAX_SECONDS = 900;

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
        // On a standard queue a group means fairness, not order: one busy tenant cannot hold up another.
        MessageGroupId: message.tenant,
        // A longer wait is the sweeper's: the message would only come early and find nothing due.
        DelaySeconds: Math.min(Math.ceil(delayMs / 1000), SQS_DELAY_MAX_SECONDS),
      }),
    );
  }
}

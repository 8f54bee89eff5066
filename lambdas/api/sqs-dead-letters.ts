import { GetQueueAttributesCommand, type SQSClient, StartMessageMoveTaskCommand } from '@aws-sdk/client-sqs';
import type { DeadLetters } from './dead-letters-api.ts';

export interface DeadLetterQueue {
  name: string;
  url: string;
  arn: string;
}

export class SqsDeadLetters implements DeadLetters {
  readonly #client: SQSClient;
  readonly #queues: readonly DeadLetterQueue[];

  constructor(client: SQSClient, queues: readonly DeadLetterQueue[]) {
    this.#client = client;
    this.#queues = queues;
  }

  counts(): Promise<{ queue: string; messages: number }[]> {
    return Promise.all(
      this.#queues.map(async ({ name, url }) => {
        const { Attributes } = await this.#client.send(
          new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['ApproximateNumberOfMessages'] }),
        );
        return { queue: name, messages: Number(Attributes?.ApproximateNumberOfMessages ?? 0) };
      }),
    );
  }

  async redrive(): Promise<void> {
    for (const { arn } of this.#queues) {
      await this.#client.send(new StartMessageMoveTaskCommand({ SourceArn: arn }));
    }
  }
}

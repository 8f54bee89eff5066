import { ExecutionAlreadyExists, type SFNClient, StartExecutionCommand } from '@aws-sdk/client-sfn';
import { SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { OutboxDispatcher, OutboxEntry } from './outbox.ts';

/** Evidence is sealed from a queue of its own; an approval is a state machine execution named after it, so it starts once. */
export class AwsOutbox implements OutboxDispatcher {
  readonly #sqs: SQSClient;
  readonly #sfn: SFNClient;
  readonly #sealQueueUrl: string;
  readonly #approvalMachineArn: string;

  constructor(sqs: SQSClient, sfn: SFNClient, to: { sealQueueUrl: string; approvalMachineArn: string }) {
    this.#sqs = sqs;
    this.#sfn = sfn;
    this.#sealQueueUrl = to.sealQueueUrl;
    this.#approvalMachineArn = to.approvalMachineArn;
  }

  async dispatch(entry: OutboxEntry): Promise<void> {
    const { id: entryId, tenant, runId, approvalId } = entry;
    if (entry.kind === 'seal_evidence') {
      const MessageBody = JSON.stringify({ entryId, tenant, runId });
      await this.#sqs.send(
        new SendMessageCommand({ QueueUrl: this.#sealQueueUrl, MessageBody, MessageGroupId: tenant }),
      );
      return;
    }
    await this.#sfn
      .send(
        new StartExecutionCommand({
          stateMachineArn: this.#approvalMachineArn,
          name: approvalId,
          input: JSON.stringify({ entryId, tenant, runId, approvalId }),
        }),
      )
      .catch((error: unknown) => {
        if (!(error instanceof ExecutionAlreadyExists)) throw error;
      });
  }
}

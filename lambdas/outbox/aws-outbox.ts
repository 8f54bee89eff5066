import { ExecutionAlreadyExists, type SFNClient, StartExecutionCommand } from '@aws-sdk/client-sfn';
import { SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { type InvokedFunction, invokeLater } from '../entry/invoke-function.ts';
import type { Clock } from '../entry/ports.ts';
import { isAnnouncement, type OutboxDispatcher, type OutboxEntry, stageSeconds } from './outbox.ts';

export interface Destinations {
  sealQueueUrl: string;
  approvalQueueUrl: string;
  approvalMachineArn: string;
  /** The function that posts cards. */
  announceFunction: InvokedFunction;
}

/**
 * Sends entries to queues. An approval is an execution of the state machine with the approval's id, so it starts once. Most
 * approvals are announced first, by a function that Lambda invokes later: a queue would add three requests to each.
 * Each function knows only the destinations that it may send to; the sweeper sends its other entries.
 */
export class AwsOutbox implements OutboxDispatcher {
  readonly #sqs: SQSClient;
  readonly #sfn: SFNClient;
  readonly #to: Partial<Destinations>;
  readonly #clock: Clock;

  constructor(sqs: SQSClient, sfn: SFNClient, to: Partial<Destinations>, clock: Clock) {
    this.#sqs = sqs;
    this.#sfn = sfn;
    this.#to = to;
    this.#clock = clock;
  }

  async dispatch(entry: OutboxEntry): Promise<void> {
    const { id: entryId, tenant, runId } = entry;
    switch (entry.kind) {
      case 'seal_evidence': {
        const again = entry.attempts > 0 && { again: true };
        return this.#send(this.#to.sealQueueUrl, tenant, { kind: entry.kind, entryId, tenant, runId, ...again });
      }
      case 'export_run':
        return this.#send(this.#to.sealQueueUrl, tenant, { kind: entry.kind, entryId, tenant, runId });
      case 'seal_addendum':
        return this.#send(this.#to.sealQueueUrl, tenant, { kind: entry.kind, entryId, tenant, runId, seq: entry.seq });
      case 'store_output': {
        const { kind, stepIndex, leaseVersion } = entry;
        const body = { kind, entryId, tenant, runId, stepIndex, leaseVersion };
        return this.#send(this.#to.sealQueueUrl, tenant, body);
      }
      case 'post_progress':
        return this.#send(this.#to.approvalQueueUrl, tenant, {
          ...{ kind: entry.kind, entryId, tenant, runId, seq: entry.seq },
        });
      case 'notify_run_end':
        return this.#send(this.#to.approvalQueueUrl, tenant, { kind: entry.kind, entryId, tenant, runId });
      case 'follow_approval': {
        const { approvalId } = entry;
        return this.#send(this.#to.approvalQueueUrl, tenant, { entryId, tenant, runId, approvalId });
      }
      case 'list_overdue':
      case 'repeat_digest': {
        const { kind, approvalId } = entry;
        return this.#send(this.#to.approvalQueueUrl, tenant, { kind, entryId, tenant, runId, approvalId });
      }
      case 'start_approval': {
        if (isAnnouncement(entry)) return this.#announce({ announce: entry });
        const { approvalId, clocks } = entry;
        const seconds = stageSeconds(clocks, this.#clock.now());
        return this.#start(approvalId, { entryId, tenant, runId, approvalId, ...clocks, ...seconds });
      }
    }
  }

  async #send(QueueUrl: string | undefined, tenant: string, body: object): Promise<void> {
    if (!QueueUrl) throw new Error('this function may not send this outbox entry');
    await this.#sqs.send(
      new SendMessageCommand({ QueueUrl, MessageBody: JSON.stringify(body), MessageGroupId: tenant }),
    );
  }

  async #announce(event: object): Promise<void> {
    const { announceFunction } = this.#to;
    if (!announceFunction) throw new Error('this function may not announce approvals');
    await invokeLater(announceFunction, event);
  }

  async #start(name: string, input: object): Promise<void> {
    const stateMachineArn = this.#to.approvalMachineArn;
    if (!stateMachineArn) throw new Error('this function may not start approvals');
    await this.#sfn
      .send(new StartExecutionCommand({ stateMachineArn, name, input: JSON.stringify(input) }))
      .catch((error: unknown) => {
        if (!(error instanceof ExecutionAlreadyExists)) throw error;
      });
  }
}

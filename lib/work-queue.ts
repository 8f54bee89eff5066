import { Duration } from 'aws-cdk-lib';
import { AnyPrincipal, Effect, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import { type CfnQueuePolicy, Queue, QueuePolicy } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { NodeFunction } from './node-function.ts';

/** AWS recommends six times the consumer's timeout and the batch window, so that a throttled batch is retried before its messages reappear. */
const VISIBILITY_PER_TIMEOUT = 6;
export const RECEIVES_BEFORE_DEAD_LETTER = 5;
const DEAD_LETTER_RETENTION = Duration.days(14);

/** A standard queue with a dead-letter queue. Duplicate and lost messages are harmless, because the state is in DynamoDB. */
export class WorkQueue extends Construct {
  readonly queue: Queue;
  readonly deadLetters: Queue;
  readonly #tlsOnly: PolicyStatement;
  readonly #policy: CfnQueuePolicy;

  readonly #batchWindow: Duration | undefined;

  /** `batchWindow`: how long Lambda waits for further messages before it invokes the consumer. */
  constructor(
    scope: Construct,
    id: string,
    { consumerTimeout, batchWindow }: { consumerTimeout: Duration; batchWindow?: Duration },
  ) {
    super(scope, id);
    this.#batchWindow = batchWindow;
    const waitsSeconds = batchWindow?.toSeconds() ?? 0;
    this.deadLetters = new Queue(this, 'DeadLetters', { retentionPeriod: DEAD_LETTER_RETENTION });
    this.queue = new Queue(this, 'Queue', {
      visibilityTimeout: Duration.seconds(consumerTimeout.toSeconds() * VISIBILITY_PER_TIMEOUT + waitsSeconds),
      deadLetterQueue: { queue: this.deadLetters, maxReceiveCount: RECEIVES_BEFORE_DEAD_LETTER },
    });
    // One policy for both queues: with `enforceSSL` each would have its own.
    this.#tlsOnly = new PolicyStatement({
      effect: Effect.DENY,
      principals: [new AnyPrincipal()],
      actions: ['sqs:*'],
      resources: [this.queue.queueArn, this.deadLetters.queueArn],
      conditions: { Bool: { 'aws:SecureTransport': 'false' } },
    });
    const policy = new QueuePolicy(this, 'TlsOnly', { queues: [this.queue, this.deadLetters] });
    policy.document.addStatements(this.#tlsOnly);
    this.#policy = policy.node.defaultChild as CfnQueuePolicy;
  }

  /** Puts another queue under the same policy, which saves a CloudFormation resource. */
  enforceTlsOf(other: Queue): void {
    this.#tlsOnly.addResources(other.queueArn);
    this.#policy.queues = [...this.#policy.queues, other.queueUrl];
  }

  consumedBy(
    consumer: NodeFunction,
    { batchSize, maxConcurrency }: { batchSize: number; maxConcurrency: number },
  ): void {
    consumer.addEventSource(
      new SqsEventSource(this.queue, {
        batchSize,
        maxConcurrency,
        reportBatchItemFailures: true,
        ...(this.#batchWindow && { maxBatchingWindow: this.#batchWindow }),
      }),
    );
  }

  /** A redrive receives all dead letters, makes those of other tenants visible again, and sends the tenant's own to the queue. */
  allowRedrive(to: NodeFunction): void {
    to.allow(
      ['sqs:GetQueueAttributes', 'sqs:ReceiveMessage', 'sqs:ChangeMessageVisibility', 'sqs:DeleteMessage'],
      [this.deadLetters.queueArn],
    );
    this.allowSend(to);
  }

  allowSend(...senders: NodeFunction[]): void {
    for (const sender of senders) sender.allow(['sqs:SendMessage'], [this.queue.queueArn]);
  }
}

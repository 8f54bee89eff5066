import { AwsError, type InvokeFunction } from '../aws/aws.ts';
import type { LocalSqs } from '../cloud/sqs/sqs.ts';
import type { TableStreams } from '../dynamodb/table-stream.ts';
import type { HostClock } from '../host/clock.ts';
import type { Iam } from '../iam/iam.ts';
import type { ResolvedResource, ResolvedStack } from '../template/template.ts';
import { parseFilters } from './event-filter.ts';
import { startEventSource } from './event-source.ts';
import { DEFAULT_CONCURRENCY } from './functions.ts';
import { startStreamSource } from './stream-source.ts';

interface SourceOptions {
  stack: ResolvedStack;
  clock: HostClock;
  iam: Iam;
  sqs: LocalSqs;
  streams: TableStreams;
  invoke: InvokeFunction;
  log(source: string, line: string): void;
}

/** The defaults of Lambda. */
const QUEUE_BATCH_DEFAULT = 10;
const STREAM_BATCH_DEFAULT = 100;

const QUEUE_ACTIONS = ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'];
const STREAM_ACTIONS = ['dynamodb:DescribeStream', 'dynamodb:GetRecords', 'dynamodb:GetShardIterator'];

/** Starts the event source mappings of the template: queues and the streams of tables. */
export function startEventSources(options: SourceOptions): { stop(): Promise<void> }[] {
  return options.stack.ofType('AWS::Lambda::EventSourceMapping').map((mapping) => {
    const isStream = String(mapping.properties.EventSourceArn).includes(':dynamodb:');
    return isStream ? streamSource(mapping, options) : queueSource(mapping, options);
  });
}

function queueSource(mapping: ResolvedResource, options: SourceOptions) {
  const { properties } = mapping;
  const consumer = consumerOf(mapping, options);
  const queueArn = String(properties.EventSourceArn);
  const scaling = properties.ScalingConfig as { MaximumConcurrency?: number } | undefined;
  return startEventSource({
    ...options,
    ...consumer,
    queueArn,
    batchSize: Number(properties.BatchSize ?? QUEUE_BATCH_DEFAULT),
    batchingWindowMs: Number(properties.MaximumBatchingWindowInSeconds ?? 0) * 1000,
    // Further invocations would wait for a thread, with the messages that came first, instead of with full batches.
    maximumConcurrency: Math.min(Number(scaling?.MaximumConcurrency ?? 2), DEFAULT_CONCURRENCY),
    checkAccess: () => consumer.require(QUEUE_ACTIONS, queueArn),
    onError: (error) => options.log(consumer.logicalId, `a batch stays in the queue: ${String(error)}`),
  });
}

function streamSource(mapping: ResolvedResource, options: SourceOptions) {
  const { logicalId, properties } = mapping;
  const consumer = consumerOf(mapping, options);
  const streamArn = String(properties.EventSourceArn);
  const { OnFailure } = (properties.DestinationConfig ?? {}) as { OnFailure?: { Destination: string } };
  return startStreamSource({
    ...options,
    ...consumer,
    streamArn,
    filters: parseFilters(properties.FilterCriteria, logicalId),
    batchSize: Number(properties.BatchSize ?? STREAM_BATCH_DEFAULT),
    bisect: properties.BisectBatchOnFunctionError === true,
    retriesMax: limit(properties.MaximumRetryAttempts),
    recordAgeMaxMs: limit(properties.MaximumRecordAgeInSeconds) * 1000,
    checkAccess: () => {
      consumer.require(STREAM_ACTIONS, streamArn);
      consumer.require(['dynamodb:ListStreams'], '*');
    },
    onFailure: async (body) => {
      options.log(consumer.logicalId, `a batch of the stream was given up: ${JSON.stringify(body)}`);
      const queue = OnFailure && options.stack.byArn(OnFailure.Destination);
      if (!queue) return;
      consumer.require(['sqs:SendMessage'], queue.arn);
      await options.sqs.call('SendMessage', { QueueUrl: queue.ref, MessageBody: JSON.stringify(body) });
    },
    onError: (error) => options.log(consumer.logicalId, `a batch of the stream failed: ${String(error)}`),
  });
}

/** -1, the default, means without a limit. */
const limit = (value: unknown): number => (Number(value ?? -1) < 0 ? Number.POSITIVE_INFINITY : Number(value));

/** As in Lambda, the role of the function must allow it to read the source. */
function consumerOf({ properties }: ResolvedResource, { stack, iam }: SourceOptions) {
  const name = String(properties.FunctionName);
  const target = stack.ofType('AWS::Lambda::Function').find(({ ref, arn }) => name === ref || name === arn);
  if (!target) throw new Error(`an event source mapping names ${name}, which the template does not have`);
  const { logicalId, arn: functionArn } = target;
  const roleLogicalId = stack.byArn(String(target.properties.Role))?.logicalId ?? '';
  const responses = (properties.FunctionResponseTypes ?? []) as string[];
  return {
    logicalId,
    functionArn,
    reportBatchItemFailures: responses.includes('ReportBatchItemFailures'),
    require(actions: readonly string[], resource: string): void {
      for (const action of actions) {
        const decision = iam.authorize({ roleLogicalId, caller: logicalId, action, resource });
        if (!decision.allowed) throw new AwsError('AccessDeniedException', decision.message);
      }
    },
  };
}

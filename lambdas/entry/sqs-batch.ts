import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type * as z from 'zod';
import type { Log } from './ports.ts';

export interface Delivered<Message> {
  message: Message;
  /** 1 if it was never delivered before. */
  deliveries: number;
}

/** Processes the messages of a batch in parallel. SQS delivers only the failed ones again. */
export function processBatch<Message>(
  event: SQSEvent,
  schema: z.ZodType<Message>,
  process: (message: Message) => Promise<void>,
  log: Log,
): Promise<SQSBatchResponse> {
  const each = (messages: readonly Delivered<Message>[]) =>
    Promise.allSettled(messages.map(async ({ message }) => process(message)));
  return processTogether(event, schema, each, log);
}

/** The same for a function that decides how to process a batch. It returns the result of each message. */
export async function processTogether<Message>(
  { Records }: SQSEvent,
  schema: z.ZodType<Message>,
  process: (messages: readonly Delivered<Message>[]) => Promise<PromiseSettledResult<void>[]>,
  log: Log,
): Promise<SQSBatchResponse> {
  const read = await Promise.allSettled(
    Records.map(async ({ body, attributes }) => ({
      message: schema.parse(JSON.parse(body)),
      deliveries: Number(attributes?.ApproximateReceiveCount ?? 1),
    })),
  );
  const readable = read.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const processed = readable.length > 0 ? await process(readable) : [];
  const batchItemFailures = Records.flatMap(({ messageId }, index) => {
    const message = read[index] as PromiseSettledResult<Delivered<Message>>;
    const result = message.status === 'rejected' ? message : processed[readable.indexOf(message.value)];
    if (result?.status !== 'rejected') return [];
    log.error('a message failed; SQS delivers it again, and after five failures moves it to the dead-letter queue', {
      messageId,
      error: result.reason,
    });
    return [{ itemIdentifier: messageId }];
  });
  return { batchItemFailures };
}

import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type * as z from 'zod';
import type { Log } from './ports.ts';

/** Works through a batch side by side; only the messages that failed come again. */
export async function processBatch<Message>(
  event: SQSEvent,
  schema: z.ZodType<Message>,
  work: (message: Message) => Promise<void>,
  log: Log,
): Promise<SQSBatchResponse> {
  const failed = await Promise.all(
    event.Records.map(async ({ messageId, body }) => {
      try {
        await work(schema.parse(JSON.parse(body)));
        return [];
      } catch (error) {
        log.error('a message failed and will come again, in the end to the dead-letter queue', { messageId, error });
        return [{ itemIdentifier: messageId }];
      }
    }),
  );
  return { batchItemFailures: failed.flat() };
}

import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type * as z from 'zod';
import type { Log } from './ports.ts';

/** Processes the messages of a batch in parallel. SQS delivers only the failed ones again. */
export async function processBatch<Message>(
  event: SQSEvent,
  schema: z.ZodType<Message>,
  process: (message: Message) => Promise<void>,
  log: Log,
): Promise<SQSBatchResponse> {
  const failed = await Promise.all(
    event.Records.map(async ({ messageId, body }) => {
      try {
        await process(schema.parse(JSON.parse(body)));
        return [];
      } catch (error) {
        log.error(
          'a message failed; SQS delivers it again, and after five failures moves it to the dead-letter queue',
          { messageId, error },
        );
        return [{ itemIdentifier: messageId }];
      }
    }),
  );
  return { batchItemFailures: failed.flat() };
}

import type { SQSEvent } from 'aws-lambda';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { processBatch } from '../../lambdas/entry/sqs-batch.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';

const Message = z.object({ name: z.string() });

const batch = (...bodies: string[]) =>
  ({ Records: bodies.map((body, index) => ({ messageId: `m${index}`, body })) }) as unknown as SQSEvent;

it('SQS delivers only failed messages again; the others are processed', async () => {
  const processed: string[] = [];
  const log = new MemoryLog();
  const event = batch('{"name":"good"}', 'not json', '{"other":"shape"}', '{"name":"bad"}', '{"name":"last"}');
  const response = await processBatch(
    event,
    Message,
    async ({ name }) => {
      if (name === 'bad') throw new Error('cannot');
      processed.push(name);
    },
    log,
  );
  expect(processed).toEqual(['good', 'last']);
  expect(response.batchItemFailures).toEqual([
    { itemIdentifier: 'm1' },
    { itemIdentifier: 'm2' },
    { itemIdentifier: 'm3' },
  ]);
  expect(log.messages('error')).toHaveLength(3);
});

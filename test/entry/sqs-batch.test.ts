import type { SQSEvent } from 'aws-lambda';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { processBatch } from '../../lambdas/entry/sqs-batch.ts';
import { MemoryLog } from '../fakes/memory-log.ts';

const Message = z.object({ name: z.string() });

const batch = (...bodies: string[]) =>
  ({ Records: bodies.map((body, index) => ({ messageId: `m${index}`, body })) }) as unknown as SQSEvent;

it('only the messages that failed come again, and the others are worked through', async () => {
  const worked: string[] = [];
  const log = new MemoryLog();
  const event = batch('{"name":"good"}', 'not json', '{"other":"shape"}', '{"name":"bad"}', '{"name":"last"}');
  const answer = await processBatch(
    event,
    Message,
    async ({ name }) => {
      if (name === 'bad') throw new Error('cannot');
      worked.push(name);
    },
    log,
  );
  expect(worked).toEqual(['good', 'last']);
  expect(answer.batchItemFailures).toEqual([
    { itemIdentifier: 'm1' },
    { itemIdentifier: 'm2' },
    { itemIdentifier: 'm3' },
  ]);
  expect(log.messages('error')).toHaveLength(3);
});

import type { BatchGetItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { expect, it } from 'vitest';
import { toItem } from '../../lambdas/run/dynamo/dynamo-items.ts';
import type { Key } from '../../lambdas/run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../lambdas/run/dynamo/dynamo-rows.ts';

const keys = (count: number): Key[] =>
  Array.from({ length: count }, (_, index) => ({ pk: `RUN#t#${index}`, sk: 'RUN' }));

/** Returns the configured number of keys of each request, and leaves the others unprocessed. */
function answering(...counts: number[]) {
  const asked: number[] = [];
  const client = {
    send: async ({ input }: BatchGetItemCommand) => {
      const all = input.RequestItems?.runs?.Keys ?? [];
      const read = counts[asked.length] ?? all.length;
      asked.push(all.length);
      const Responses = {
        runs: all.slice(0, read).map((key) => toItem({ pk: key.pk?.S ?? '', sk: 'RUN' }, { of: key.pk?.S })),
      };
      return { Responses, UnprocessedKeys: read < all.length ? { runs: { Keys: all.slice(read) } } : {} };
    },
  };
  return { rows: new DynamoRows(client as unknown as DynamoDBClient, 'runs'), asked };
}

const pausing = () => {
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    waits.push(ms);
  };
  return { waits, pause: { random: () => 1, sleep } };
};

it('keys that DynamoDB left unread are requested again, each time after a longer wait, until all are read', async () => {
  const { rows, asked } = answering(0, 0, 1, 0, 1);
  const { waits, pause } = pausing();
  const found = await rows.batchGet<{ of: string }>(keys(3), pause);
  expect(found.map(({ of }) => of).sort()).toEqual(['RUN#t#0', 'RUN#t#1', 'RUN#t#2']);
  expect(asked).toEqual([3, 3, 3, 2, 2, 1]);
  expect(waits).toEqual([50, 100, 25, 50, 25]);
});

it('reads in batches of a hundred, without a wait while everything is read', async () => {
  const { rows, asked } = answering();
  const { waits, pause } = pausing();
  expect(await rows.batchGet(keys(250), pause)).toHaveLength(250);
  expect({ asked, waits }).toEqual({ asked: [100, 100, 50], waits: [] });
});

it('a table that reads nothing fails after eight attempts', async () => {
  const { rows, asked } = answering(...Array.from({ length: 50 }, () => 0));
  const { pause } = pausing();
  await expect(rows.batchGet(keys(2), pause)).rejects.toThrow('DynamoDB left 2 keys unread 8 times');
  expect(asked).toHaveLength(8);
});

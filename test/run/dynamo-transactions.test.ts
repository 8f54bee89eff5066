import { type DynamoDBClient, TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import { expect, it } from 'vitest';
import { transact } from '../../lambdas/run/dynamo/dynamo-transactions.ts';

/** A client that refuses with these codes, one after the other, and then accepts. */
function refusing(...codes: string[]) {
  const sent = { count: 0 };
  const send = async () => {
    const Code = codes[sent.count];
    sent.count += 1;
    if (Code) {
      throw new TransactionCanceledException({
        message: Code,
        $metadata: {},
        CancellationReasons: [{ Code: 'None' }, { Code }],
      });
    }
  };
  return { client: { send } as unknown as DynamoDBClient, sent };
}

const waits: number[] = [];
const pause = {
  random: () => 0.5,
  sleep: async (ms: number) => {
    waits.push(ms);
  },
};

it('a transaction that conflicts with another is retried, each time after a longer jittered wait', async () => {
  waits.length = 0;
  const { client, sent } = refusing('TransactionConflict', 'ThrottlingError', 'TransactionConflict');
  expect(await transact(client, [], pause)).toBeUndefined();
  expect(sent.count).toBe(4);
  expect(waits).toEqual([25, 50, 100]);
});

it('a failed condition is a result and is not retried', async () => {
  const { client, sent } = refusing('ConditionalCheckFailed');
  expect(await transact(client, [], pause)).toEqual([{ Code: 'None' }, { Code: 'ConditionalCheckFailed' }]);
  expect(sent.count).toBe(1);
});

it('the number of retries is bounded, and errors that a retry cannot fix are not retried', async () => {
  const endless = refusing(...Array.from({ length: 20 }, () => 'TransactionConflict'));
  await expect(transact(endless.client, [], pause)).rejects.toThrow(TransactionCanceledException);
  expect(endless.sent.count).toBe(6);
  const broken = refusing('ValidationError');
  await expect(transact(broken.client, [], pause)).rejects.toThrow(TransactionCanceledException);
  expect(broken.sent.count).toBe(1);
});

import { TransactWriteItems$ } from '@aws-sdk/client-dynamodb';
import { DynamoDBJsonCodec2 as OfPackage } from '@aws-sdk/dynamodb-codec';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DynamoDBJsonCodec2 as Own } from '../../lambdas/entry/bundle-replacements/dynamodb-codec.ts';
import { anyCharacter } from '../fakes/any-character.ts';

const SEED = 20_261_118;
const INPUT = TransactWriteItems$[4];

const text = fc.string({ unit: anyCharacter, maxLength: 40 });
const { attribute } = fc.letrec((tie) => ({
  attribute: fc.oneof(
    { maxDepth: 3 },
    fc.record({ S: text }),
    fc.record({ N: fc.integer().map(String) }),
    fc.record({ BOOL: fc.boolean() }),
    fc.record({ B: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array().map(Buffer.from)) }),
    fc.record({ L: fc.array(tie('attribute'), { maxLength: 3 }) }),
    fc.record({ M: fc.dictionary(text, tie('attribute'), { maxKeys: 3 }) }),
  ),
}));
/** A row may have attributes with the names of types. */
const item = fc.dictionary(fc.oneof(text, fc.constantFrom('S', 'B', 'toJSON')), attribute, { maxKeys: 4 });
const put = fc.record(
  { TableName: text, Item: item, ConditionExpression: text, ExpressionAttributeValues: item },
  { requiredKeys: ['TableName', 'Item'] },
);
const inputs = fc.record({
  TransactItems: fc.array(fc.record({ Put: put, Delete: fc.constant(undefined) }), { maxLength: 3 }),
  ClientRequestToken: fc.uuid(),
});

/** As the SDK asks for it. */
function written(codec: unknown, input: object): unknown {
  const serializer = (codec as OfPackage).createSerializer();
  serializer.write(INPUT as never, input);
  const body: unknown = serializer.flush();
  return JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body as Uint8Array));
}

it('writes every request as @aws-sdk/dynamodb-codec does', () => {
  const check = fc.property(inputs, (input) => {
    expect(written(new Own(), input)).toEqual(written(new OfPackage(), input));
  });
  fc.assert(check, { seed: SEED, numRuns: 300 });
});

it('gives each transaction without a token a new one', () => {
  const token = () => (written(new Own(), { TransactItems: [] }) as { ClientRequestToken: string }).ClientRequestToken;
  expect(token()).toMatch(/^[0-9a-f-]{36}$/);
  expect(token()).not.toBe(token());
});

/**
 * Bundles contain this file in place of `@aws-sdk/dynamodb-codec` (lib/bundle-functions.ts). The package writes a request character by
 * character, along its schema. But a request is already its own JSON, except for bytes, so `JSON.stringify` can write it.
 */
import { NormalizedSchema } from '@smithy/core/schema';
import { generateIdempotencyToken } from '@smithy/core/serde';
// @ts-expect-error The package has types for its entry point only; this is the file of it.
import { DynamoDBJsonCodec2 as OfPackage } from '../../../node_modules/@aws-sdk/dynamodb-codec/dist-es/codec-v2/DynamoDBJsonCodec2.js';

type Schema = Parameters<typeof NormalizedSchema.of>[0];
type Input = Record<string, unknown>;

export class DynamoDBJsonCodec2 extends OfPackage {
  createSerializer() {
    let text = '';
    return {
      setSerdeContext: () => undefined,
      write(schema: Schema, input: Input) {
        text = JSON.stringify(withTextOfBytes({ ...tokensFor(schema, input), ...input }));
      },
      flush: () => text,
    };
  }
}

/** The members of an input that the SDK fills in, by schema. They let DynamoDB recognize a transaction that is sent again. */
const TOKENS = new Map<Schema, readonly string[]>();

function tokensFor(schema: Schema, input: Input): Input {
  let names = TOKENS.get(schema);
  if (!names) {
    const members = [...NormalizedSchema.of(schema).structIterator()];
    names = members.filter(([, member]) => member.isIdempotencyToken()).map(([name]) => name);
    TOKENS.set(schema, names);
  }
  const missing = names.filter((name) => input[name] === undefined);
  return Object.fromEntries(missing.map((name) => [name, generateIdempotencyToken()]));
}

/** The value with bytes in base64: the value itself if it contains none. */
function withTextOfBytes<Value extends object>(value: Value): Value {
  // Most values are attributes with a text.
  if ('S' in value && typeof value.S === 'string') return value;
  const members = value as Record<string, unknown>;
  let copy: Record<string, unknown> | undefined;
  for (const name of Object.keys(members)) {
    const member = members[name];
    if (typeof member !== 'object' || member === null) continue;
    const text = member instanceof Uint8Array ? base64(member) : withTextOfBytes(member);
    if (text === member) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
    copy[name] = text;
  }
  return (copy as Value | undefined) ?? value;
}

const base64 = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');

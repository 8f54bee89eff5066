import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { buildSync } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FUNCTION_ALIASES } from '../../../lib/bundle-functions.ts';
import { temporaryFolder } from '../../local/cloud/wire.ts';

/** The clients as bundles contain them: with what lib/bundle-functions.ts replaces. */
type Sdk = typeof import('@aws-sdk/client-s3') & typeof import('@aws-sdk/client-dynamodb');

type HttpHandler = NonNullable<NonNullable<ConstructorParameters<Sdk['S3Client']>[0]>['requestHandler']>;

const ROOT = join(import.meta.dirname, '..', '..', '..');
const REQUESTS = 40;

let folder: ReturnType<typeof temporaryFolder>;
let sdk: Sdk;
beforeAll(async () => {
  folder = temporaryFolder();
  const { outputFiles } = buildSync({
    stdin: {
      contents: `export { S3Client, PutObjectCommand } from '@aws-sdk/client-s3';
        export { DynamoDBClient, GetItemCommand, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';`,
      resolveDir: ROOT,
    },
    ...{ bundle: true, platform: 'node', format: 'esm', mainFields: ['module', 'main'], write: false },
    ...{ alias: FUNCTION_ALIASES, external: ['bowser'], absWorkingDir: ROOT, preserveSymlinks: true },
  });
  const file = join(folder.path, 'sdk.mjs');
  writeFileSync(file, outputFiles[0]?.contents ?? '');
  sdk = await import(file);
});
afterAll(() => folder.remove());

interface Sent {
  hostname: string;
  path: string;
  body: Uint8Array;
}

const headers = { 'content-type': 'application/x-amz-json-1.0' };

/** Refuses the first attempt of every third request. */
function handler(respond: (sent: Sent) => string, sent: Sent[]) {
  return {
    handle: async (request: Sent) => {
      const isRefused = sent.push(request) % 3 === 0 && sent.length <= REQUESTS;
      await setImmediate();
      const body = Buffer.from(isRefused ? '' : respond(request));
      return { response: { statusCode: isRefused ? 503 : 200, headers, body } };
    },
  } as unknown as HttpHandler;
}

const settings = {
  region: 'eu-central-1',
  credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
  retryMode: 'standard',
  maxAttempts: 5,
};
const numbers = Array.from({ length: REQUESTS }, (_, number) => number);

it('concurrent requests to several buckets each reach their own', async () => {
  const sent: Sent[] = [];
  const client = new sdk.S3Client({ ...settings, requestHandler: handler(() => '', sent) });
  const put = (number: number) =>
    client.send(new sdk.PutObjectCommand({ Bucket: `bucket-${number % 2}`, Key: String(number), Body: 'x' }));
  await Promise.all(numbers.map(put));
  expect(sent.length).toBeGreaterThan(REQUESTS);
  const reached = sent.map(({ hostname, path }) => `${hostname.split('.')[0]}${path}`);
  expect([...new Set(reached)].sort()).toEqual(numbers.map((number) => `bucket-${number % 2}/${number}`).sort());
});

it('concurrent requests to DynamoDB are tried again and get their own responses', async () => {
  const sent: Sent[] = [];
  const echo = ({ body }: Sent) => JSON.stringify({ Item: JSON.parse(Buffer.from(body).toString()).Key });
  const client = new sdk.DynamoDBClient({ ...settings, requestHandler: handler(echo, sent) });
  const got = await Promise.all(
    numbers.map((number) =>
      client.send(new sdk.GetItemCommand({ TableName: 'T', Key: { id: { N: String(number) } } })),
    ),
  );
  expect(got.map(({ Item }) => Item?.id?.N)).toEqual(numbers.map(String));
  expect(sent.length).toBeGreaterThan(REQUESTS);
});

it('a transaction that is sent again to DynamoDB has the same token and bytes, and each one has its own token', async () => {
  const sent: Sent[] = [];
  const client = new sdk.DynamoDBClient({ ...settings, requestHandler: handler(() => '{}', sent) });
  const bytes = (number: number) => Buffer.from(`row ${number}`);
  await Promise.all(
    numbers.map((number) => {
      const Item = { id: { N: String(number) }, doc: { B: bytes(number) } };
      return client.send(new sdk.TransactWriteItemsCommand({ TransactItems: [{ Put: { TableName: 'T', Item } }] }));
    }),
  );
  const tokens = new Map<string, Set<string>>();
  for (const { hostname, body } of sent) {
    expect(hostname).toBe('dynamodb.eu-central-1.amazonaws.com');
    const { ClientRequestToken, TransactItems } = JSON.parse(Buffer.from(body).toString());
    const { id, doc } = TransactItems[0].Put.Item;
    expect(doc).toEqual({ B: bytes(id.N).toString('base64') });
    tokens.set(id.N, (tokens.get(id.N) ?? new Set()).add(ClientRequestToken));
  }
  expect(sent.length).toBeGreaterThan(REQUESTS);
  expect([...tokens.values()].map(({ size }) => size)).toEqual(numbers.map(() => 1));
  expect(new Set([...tokens.values()].flatMap((each) => [...each])).size).toBe(REQUESTS);
});

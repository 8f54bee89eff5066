import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { S3Client } from '@aws-sdk/client-s3';
import { afterEach, expect, it } from 'vitest';
import { S3EvidenceStore } from '../../lambdas/evidence/s3-evidence-store.ts';

/** The response of S3 while it is undecided which of two conditional writes wins. */
const CONFLICT = { status: 409, code: 'ConditionalRequestConflict' };
const TAKEN = { status: 412, code: 'PreconditionFailed' };
const DENIED = { status: 403, code: 'AccessDenied' };

let server: Server | undefined;
afterEach(() => server?.close());

/** A bucket with these responses, which accepts all later requests. */
async function storeAnswering(...answers: { status: number; code: string }[]) {
  const requests: { ifNoneMatch: unknown; body: string }[] = [];
  const listening = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    requests.push({ ifNoneMatch: request.headers['if-none-match'], body: Buffer.concat(chunks).toString() });
    const refusal = answers[requests.length - 1];
    if (!refusal) return response.writeHead(200, { etag: '"1"' }).end();
    const body = `<?xml version="1.0"?><Error><Code>${refusal.code}</Code><Message>no</Message></Error>`;
    response.writeHead(refusal.status, { 'content-type': 'application/xml' }).end(body);
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    region: 'us-east-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    forcePathStyle: true,
    maxAttempts: 1,
  });
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    waits.push(ms);
  };
  return { store: new S3EvidenceStore(client, 'evidence', { random: () => 1, sleep }), requests, waits };
}

const put = (store: S3EvidenceStore) =>
  store.putOnce('evidence/acme/run_1/bundle.json', Buffer.from('{}'), 'application/json');

it('a write with a conflict in S3 is retried with backoff, and only if the key is still free', async () => {
  const { store, requests, waits } = await storeAnswering(CONFLICT, CONFLICT);
  expect(await put(store)).toBe(true);
  expect(requests).toHaveLength(3);
  expect(requests.every(({ ifNoneMatch, body }) => ifNoneMatch === '*' && body.includes('{}'))).toBe(true);
  expect(waits).toEqual([100, 200]);
});

it('a write that lost gets an error', async () => {
  const { store } = await storeAnswering(CONFLICT, TAKEN);
  expect(await put(store)).toBe(false);
});

it('a write fails after too many conflicts, and other errors are not retried', async () => {
  const endless = await storeAnswering(...Array.from({ length: 20 }, () => CONFLICT));
  await expect(put(endless.store)).rejects.toMatchObject({ name: 'ConditionalRequestConflict' });
  expect(endless.requests).toHaveLength(6);
  server?.close();
  const denied = await storeAnswering(DENIED);
  await expect(put(denied.store)).rejects.toMatchObject({ name: 'AccessDenied' });
  expect(denied.requests).toHaveLength(1);
});

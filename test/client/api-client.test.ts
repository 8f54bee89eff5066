import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ApiClient, ApiError, NoResponse } from '../../client/api-client.ts';
import { sourceFiles } from '../style/source.ts';

interface Received {
  request: string;
  headers: IncomingMessage['headers'];
  body: string;
}

let received: Received[] = [];
let respond: (response: ServerResponse, request: IncomingMessage) => void;

const server = createServer(async (request, response) => {
  const { method, url, headers } = request;
  received.push({ request: `${method} ${url}`, headers, body: await text(request) });
  respond(response, request);
});
let client: ApiClient;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  client = new ApiClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { 'x-api-key': 'a-key' });
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  received = [];
  respond = (response) => response.end('{}');
});

it('fills in the path, leaves out undefined query parameters and identifies the caller', async () => {
  await client.call('GET /api/v1/runs/{id}/events', { params: { id: 'a/b c' }, query: { since: 3, limit: undefined } });
  expect(received).toMatchObject([
    { request: 'GET /api/v1/runs/a%2Fb%20c/events?since=3', headers: { 'x-api-key': 'a-key' }, body: '' },
  ]);
  expect(received[0]?.headers).not.toHaveProperty('content-type');
});

it('sends an object as JSON and a text as a file', async () => {
  await client.call('POST /api/v1/runs/{id}/cancel', { params: { id: 'a' }, body: { reason: 'why' } });
  await client.call('POST /api/v1/workflows', { body: 'name: a' });
  expect(received).toMatchObject([
    { headers: { 'content-type': 'application/json' }, body: '{"reason":"why"}' },
    { headers: { 'content-type': 'application/yaml' }, body: 'name: a' },
  ]);
});

it('cannot send what the contract does not accept', () => {
  const notCompiled = () => [
    // @ts-expect-error: no such route
    client.call('GET /api/v1/things'),
    // @ts-expect-error: the id is missing
    client.call('GET /api/v1/runs/{id}'),
    // @ts-expect-error: no such parameter
    client.call('GET /api/v1/runs', { query: { colour: 'red' } }),
    // @ts-expect-error: no such status
    client.call('GET /api/v1/runs', { query: { status: 'sleeping' } }),
    // @ts-expect-error: a rejection needs a reason
    client.call('POST /api/v1/runs/{id}/reject', { params: { id: 'a' }, body: { actionHash: 'x' } }),
  ];
  expect(notCompiled).toBeTypeOf('function');
});

it('reports a refusal with its status, code and text', async () => {
  respond = (response) => response.writeHead(409).end('{"code":"RUN_TERMINAL_STATE","detail":"the run has ended"}');
  const error = await client.call('GET /healthz').catch((each) => each);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 409, code: 'RUN_TERMINAL_STATE', message: 'the run has ended' });
});

it.each([200, 502])('reports a response of something else than the API, with status %i', async (status) => {
  respond = (response) => response.writeHead(status).end('<html>');
  const error = await client.call('GET /healthz').catch((each) => each);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status, code: undefined, message: '' });
});

it.each([
  ['nothing listens', () => new ApiClient('http://127.0.0.1:1', {})],
  ['the connection ends within the response', () => client],
])('reports that no response arrived if %s', async (_what, clientOf) => {
  respond = (response) => response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy());
  await expect(clientOf().call('GET /healthz')).rejects.toBeInstanceOf(NoResponse);
});

it('downloads a file in parts, byte for byte', async () => {
  const file = Buffer.from([0, 255, 1, 254, 2, 253, 3]);
  respond = (response, { headers }) => {
    const from = Number(/\d+/.exec(headers.range ?? '')?.[0]);
    const part = file.subarray(from, from + 3);
    response.writeHead(206, { 'content-range': `bytes ${from}-${from + part.length - 1}/${file.length}` }).end(part);
  };
  const bytes = await client.download('GET /api/v1/runs/{id}/evidence/{file}', {
    params: { id: 'a', file: 'bundle.json' },
  });
  expect(Buffer.from(bytes)).toEqual(file);
  expect(received.map(({ headers }) => headers.range)).toEqual(['bytes=0-', 'bytes=3-', 'bytes=6-']);
});

it('loads no schema and nothing of Node.js, so that a browser can use it', () => {
  // Functions and clients make the same events of a commit.
  const shared = ['lambdas/live/live-event.ts', 'lambdas/api/runs/execution-vocabulary.ts', 'lambdas/run/approval.ts'];
  const loaded = sourceFiles('client/**/*.ts', ...shared).flatMap(({ imports }) =>
    imports.filter(({ typesOnly }) => !typesOnly).map(({ from }) => from),
  );
  expect(loaded).toContain('client/run-watch.ts');
  expect(loaded.filter((from) => !from.startsWith('client/') && !shared.includes(from))).toEqual([]);
});

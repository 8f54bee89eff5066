import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { freePort } from '../../../local/host/free-port.ts';
import { openSimulators, type Simulators } from '../../../local/simulators/simulators.ts';
import { type SmallHost, startSmallHost, temporaryFolder } from './small-host.ts';
import { functionWith, template } from './small-template.ts';

/** `how`: by iteration, as the `fetch` of bundles reads, or by events. */
const CALLER = `
  const http = process.getBuiltinModule('node:http');
  export const handler = ({ port, method, path, body, bytes, how, more }) => new Promise((resolve) => {
    const headers = { Authorization: 'Bearer ghp_test', 'content-type': 'application/json', ...more };
    let sent;
    try {
      sent = http.request({ host: '127.0.0.1', port, method, path, headers });
    } catch ({ code }) {
      return resolve({ code });
    }
    const events = [];
    sent.on('error', ({ code, message }) => resolve({ code, message }));
    sent.once('close', () => events.push('closed'));
    sent.once('response', async (response) => {
      const { statusCode: status, headers } = response;
      let text = '';
      const ended = (rest) => setImmediate(() => resolve({ status, headers, text, events, ...rest }));
      if (how === 'events') {
        response.on('data', (bytes) => { text += bytes; });
        response.once('end', () => ended({}));
        response.once('error', ({ code }) => ended({ code }));
        return;
      }
      try {
        for await (const bytes of response) text += bytes;
        ended({});
      } catch ({ code }) {
        ended({ code });
      }
    });
    sent.end(bytes ? Buffer.from(body) : body);
  });`;

let host: SmallHost;
let simulators: Simulators;
let port: number;
const folder = temporaryFolder();

beforeAll(async () => {
  // Nothing listens on it, so a request over a socket fails.
  port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  simulators = openSimulators({
    dataFolder: folder.path,
    now: () => Date.now(),
    hostUrl: () => url,
    slackSigningSecrets: {},
  });
  host = await startSmallHost({
    template: template(functionWith('Caller', [], { Timeout: 10 })),
    handlers: { Caller: CALLER },
    simulators: { url: `${url}/_sim`, answer: simulators.answer },
    withDynamoDb: false,
  });
});
afterAll(async () => {
  await host.stop();
  simulators.close();
  folder.remove();
});

interface Outcome {
  status?: number;
  headers?: Record<string, string>;
  text?: string;
  code?: string;
  events?: string[];
}
const LABELS = '/_sim/github/repos/octo-org/website/issues/7/labels';
const call = (method: string, path: string, body?: string, how = 'iteration') =>
  host.functions.invoke('Caller', { port, method, path, body, how }) as Promise<Outcome>;
const own = (method: string, path: string, body: unknown = null) =>
  simulators.answer({ method, url: `/_sim/${path}`, headers: {}, text: JSON.stringify(body) });
const failNext = (kind: string, more: object = {}) => own('POST', 'faults', { system: 'github', kind, ...more });
const labels = async () => JSON.parse((await call('GET', LABELS)).text ?? '').map(({ name }: { name: string }) => name);

beforeEach(async () => {
  await own('DELETE', 'faults');
  await own('DELETE', 'calls');
});

for (const how of ['iteration', 'events']) {
  test(`a function reads a simulator without a socket, by ${how}`, async () => {
    const answer = await call('POST', LABELS, '{"labels":["über"]}', how);
    expect(answer).toMatchObject({ status: 200, events: ['closed'] });
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8' });
    expect(answer.headers?.['content-length']).toBe(String(Buffer.byteLength(answer.text ?? '')));
    expect(await labels()).toContain('über');
  });

  test(`a cut response is read up to the cut, and then fails, by ${how}`, async () => {
    const { text: whole = '' } = await call('GET', LABELS, undefined, how);
    await failNext('truncated_body');
    const cut = await call('GET', LABELS, undefined, how);
    expect(cut).toMatchObject({ status: 200, code: 'ECONNRESET' });
    expect(whole.startsWith(cut.text ?? '-')).toBe(true);
    expect(cut.text?.length).toBeLessThan(whole.length);
  });
}

for (const more of [{}, { 'x-amz-target': 'DynamoDB_20120810.PutItem' }]) {
  test(`bytes arrive as they were sent, with ${JSON.stringify(more)}`, async () => {
    const name = `größer-🎉-${Object.keys(more)}`;
    const sent = { port, method: 'POST', path: LABELS, body: JSON.stringify({ labels: [name] }), bytes: true, more };
    expect(await host.functions.invoke('Caller', sent)).toMatchObject({ status: 200 });
    expect(await labels()).toContain(name);
  });
}

test('after a lost response the write is made, and the caller sees a closed connection', async () => {
  await failNext('lost_answer');
  const lost = await call('POST', LABELS, '{"labels":["lost"]}');
  expect(lost).toEqual({ code: 'ECONNRESET', message: 'socket hang up' });
  expect(await labels()).toContain('lost');
});

test('statuses and delays are injected, and each call is recorded once', async () => {
  await failNext('status', { status: 502 });
  expect(await call('GET', LABELS)).toMatchObject({ status: 502 });
  await failNext('delay', { delayMs: 50 });
  const startedAt = performance.now();
  expect(await call('GET', LABELS)).toMatchObject({ status: 200 });
  expect(performance.now() - startedAt).toBeGreaterThan(45);
  const { response } = await own('GET', 'calls');
  const { calls } = response.body as { calls: { system: string; method: string; status: number }[] };
  expect(calls.map(({ method, status }) => `${method} ${status}`)).toEqual(['GET 502', 'GET 200']);
});

test('what an HTTP client refuses to send is refused, such as a credential with a line break', async () => {
  const withHeader = (more: object) =>
    host.functions.invoke('Caller', { port, method: 'GET', path: LABELS, more }) as Promise<Outcome>;
  expect(await withHeader({ authorization: 'Bearer x\nx-other: y' })).toEqual({ code: 'ERR_INVALID_CHAR' });
  expect(await withHeader({ 'not a name': 'x' })).toEqual({ code: 'ERR_INVALID_HTTP_TOKEN' });
  expect(await call('GET', `${LABELS}?a b`)).toEqual({ code: 'ERR_UNESCAPED_CHARACTERS' });
});

test('requests to other paths and ports use sockets', async () => {
  expect(await call('GET', '/api/v1/runs')).toMatchObject({ code: 'ECONNREFUSED' });
  expect(await call('GET', '/_simulated')).toMatchObject({ code: 'ECONNREFUSED' });
});

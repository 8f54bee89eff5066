import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { TerminalRun } from '../../lambdas/run/run.ts';
import { RunTraces } from '../../lambdas/telemetry/export-traces.ts';
import type { Measurement } from '../../lambdas/telemetry/metrics.ts';
import { otlpCollector } from '../../lambdas/telemetry/otlp-collector.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { accepted } from '../fakes/story.ts';
import { decodeOtlp } from './decode-otlp.ts';

const AWS = { AWS_REGION: 'eu-central-1', AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'not-a-secret' };

interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A collector that responds as a test says; 200 otherwise. */
let server: Server;
let received: Received[];
let responses: { status: number; headers?: Record<string, string>; body?: string }[];
let clock: FakeClock;
let log: MemoryLog;
let dropped: string[];

beforeEach(async () => {
  [received, responses, dropped] = [[], [], []];
  [clock, log] = [new FakeClock(), new MemoryLog()];
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body });
      const { status, headers, body: text = '{}' } = responses.shift() ?? { status: 200 };
      response.writeHead(status, headers).end(text);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
});
afterEach(() => {
  server.close();
  server.closeAllConnections();
});

const urlOf = ({ port }: AddressInfo) => `http://127.0.0.1:${port}`;
const ownUrl = () => urlOf(server.address() as AddressInfo);

function tracesTo(collector: Partial<Parameters<typeof otlpCollector>[0]> = {}): RunTraces {
  return new RunTraces({
    collector: otlpCollector({ url: `${ownUrl()}/v1/traces`, stage: 'test', aws: AWS, ...collector }),
    clock,
    sleep: async (ms) => clock.advance(ms),
    metrics: {
      record: (...all: readonly Measurement[]) => {
        for (const { metric, dimensions } of all) dropped.push(`${metric.name} ${dimensions.status}`);
      },
    },
    log,
  });
}

const { run: queued, commit } = accepted();
const RUN: TerminalRun = { ...queued, status: 'succeeded', completedAt: '2026-01-02T03:05:00.000Z', durationMs: 1 };

async function exportOne(traces: RunTraces): Promise<void> {
  const trace = traces.begin();
  trace.take({ kind: 'commit', commit });
  await trace.export(RUN);
}

it('sends OTLP that a collector can decode, with its secret headers; exporting again sends the same spans', async () => {
  const traces = tracesTo({ headers: async () => ({ 'x-api-key': 'secret of the collector' }) });
  await exportOne(traces);
  await exportOne(traces);
  const [first, second] = received;
  expect(first).toMatchObject({ path: '/v1/traces', headers: { 'content-type': 'application/json' } });
  expect(first?.headers['x-api-key']).toBe('secret of the collector');
  expect(first?.body).toBe(second?.body);
  expect(decodeOtlp(JSON.parse(first?.body ?? '')).map(({ name }) => name)).toEqual(['run', 'session.create']);
  expect(dropped).toEqual([]);
});

it('requests to X-Ray are signed and have no other headers; where AWS is emulated they go there', async () => {
  const url = 'https://xray.eu-central-1.amazonaws.com/v1/traces';
  await exportOne(tracesTo({ url, aws: { ...AWS, AWS_ENDPOINT_URL: ownUrl() } }));
  const [{ path, headers } = { path: '', headers: {} as IncomingHttpHeaders }] = received;
  expect(path).toBe('/v1/traces');
  expect(headers.authorization).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKIATEST\/\d{8}\/eu-central-1\/xray\/aws4_request/,
  );
});

it('a collector with another name of AWS gets its own headers, and no signature or token of the role', async () => {
  const sent: Record<string, string>[] = [];
  vi.stubGlobal('fetch', async (_url: URL, { headers }: { headers: Record<string, string> }) => {
    sent.push(headers);
    return new Response('{}');
  });
  try {
    for (const host of [
      'abc.execute-api.eu-central-1.amazonaws.com',
      'internal-otel-1.eu-central-1.elb.amazonaws.com',
    ]) {
      await exportOne(
        tracesTo({ url: `https://${host}/v1/traces`, headers: async () => ({ 'x-api-key': 'its key' }) }),
      );
    }
  } finally {
    vi.unstubAllGlobals();
  }
  expect(sent).toEqual(Array(2).fill({ 'content-type': 'application/json', 'x-api-key': 'its key' }));
});

it('a collector that is busy is tried again, as it asks', async () => {
  responses.push({ status: 503 }, { status: 429, headers: { 'retry-after': '2' } });
  const before = clock.now();
  await exportOne(tracesTo());
  expect(received).toHaveLength(3);
  expect(clock.now() - before).toBe(250 + 2_000);
  expect(dropped).toEqual([]);
});

it.each([
  ['it refuses the spans', { status: 400, body: '{"message":"our request, quoted"}' }],
  ['it accepts only some of them', { status: 200, body: '{"partialSuccess":{"rejectedSpans":"1"}}' }],
  ['it redirects', { status: 307, headers: { location: '/elsewhere' } }],
])('a trace is dropped and counted at once if %s; the next one is sent', async (_why, response) => {
  responses.push(response);
  const traces = tracesTo();
  await exportOne(traces);
  expect(received).toHaveLength(1);
  expect(dropped).toEqual(['traces_dropped_total refused']);
  expect(JSON.stringify(log.messages('warn'))).not.toContain('quoted');
  await exportOne(traces);
  expect(received).toHaveLength(2);
});

it('a collector that stays unavailable is tried three times; for 30 s afterwards traces are dropped without a request', async () => {
  responses.push(...Array(3).fill({ status: 503 }));
  const traces = tracesTo();
  await exportOne(traces);
  expect(received).toHaveLength(3);
  await exportOne(traces);
  expect(received).toHaveLength(3);
  expect(dropped).toEqual(['traces_dropped_total unreachable', 'traces_dropped_total skipped']);
  clock.advance(30_000);
  await exportOne(traces);
  expect(received).toHaveLength(4);
  expect(dropped).toHaveLength(2);
});

it('a collector that asks for more time than a seal has is not waited for', async () => {
  responses.push({ status: 429, headers: { 'retry-after': '60' } });
  const before = clock.now();
  await exportOne(tracesTo());
  expect(clock.now()).toBe(before);
  expect(dropped).toEqual(['traces_dropped_total unreachable']);
});

it('a collector that does not exist, or a secret that cannot be read, drops the trace and throws nothing', async () => {
  await exportOne(tracesTo({ url: 'http://127.0.0.1:1/v1/traces' }));
  await exportOne(tracesTo({ headers: () => Promise.reject(new Error('AccessDenied')) }));
  expect(dropped).toEqual(['traces_dropped_total unreachable', 'traces_dropped_total refused']);
  expect(received).toEqual([]);
});

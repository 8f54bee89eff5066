import { afterAll, beforeAll, expect, it } from 'vitest';
import { METRICS } from '../../../lambdas/telemetry/metrics.ts';
import type { MetricTotal } from '../../../local/lambda/metrics.ts';
import { type DecodedSpan, decodeOtlp } from '../../telemetry/decode-otlp.ts';
import { ask, enrolledAgent, publishCommand } from '../harness/agent-story.ts';
import { incident, incidentInserted, servicenowRequest } from '../harness/deliveries.ts';
import { eventually } from '../harness/eventually.ts';
import type { ShownRun } from '../harness/host-client.ts';
import { publishSessions, startSession } from '../harness/session-story.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const CALLER = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7' };
const TRACEPARENT = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
/** Of a program that starts a run over the API. */
const FROM_CLIENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const HOUR_MS = 3_600_000;
/** Longer than a function caches policies. */
const MINUTE_MS = 61_000;

let host: TestHost;
/** A run that a webhook with `traceparent` started, and that people approved after an hour; and a run of a command. */
let approved: ShownRun;
let commanded: ShownRun;
let assignedTraceparent: string | undefined;
/** A run with a session, which proposed one action. */
let discussed: ShownRun;

beforeAll(async () => {
  host = await startTestHost();
  await publishCommand(host);
  const filed = incident('traced');
  await host.createIncident(filed);
  const { path, headers, body } = servicenowRequest(incidentInserted(filed), { atMs: await host.now() });
  const accepted = await host.send({ path, body, headers: { ...headers, traceparent: TRACEPARENT } });
  const [runId = ''] = accepted.body.runIds;
  await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  await host.advance(HOUR_MS);
  await host.approve(runId);
  approved = await host.waitForRun(runId);
  expect(approved.status).toBe('succeeded');

  const agent = await enrolledAgent(host, 'one');
  const started = { body: { workflow: { name: 'uptime' } }, headers: { traceparent: FROM_CLIENT } };
  const { runId: commandRun } = await ask<{ runId: string }>(host, 'POST', '/runs', started);
  const offered = await eventually('an offer', async () => (await agent.sync()).assignments[0]);
  assignedTraceparent = offered.traceparent;
  const statement = await agent.take();
  const used = { id: 'db', source: 'vault' as const, audit_id: null, ttl_seconds: 60, revoked: true, fetch_ms: 250 };
  // As long as the agent says that it took: no span ends after its run.
  await host.advance(2_000);
  await agent.complete(statement, 0, { credentials_used: [used], execution_ms: 1_500 });
  commanded = await host.waitForRun(commandRun);

  await publishSessions(host);
  await host.trustAutomations();
  await host.advance(MINUTE_MS);
  const action = { tool: 'github.labels.add', input: { labels: ['traced'] } };
  discussed = await host.waitForRun(await startSession(host, { actions: [action] }));
  expect(discussed.status).toBe('succeeded');
  await host.idle();
});
afterAll(() => host.stop());

async function requestsOf(runId: string): Promise<unknown[]> {
  const { requests } = await host.ask<{ requests: unknown[] }>('GET', '/_local/traces');
  return requests.filter((request) => JSON.stringify(request).includes(runId));
}

/** The spans of a run, as OpenTelemetry's own decoder reads them. */
const spansOf = async (runId: string): Promise<DecodedSpan[]> => (await requestsOf(runId)).flatMap(decodeOtlp);

/** A span by its name, and the step that it belongs to. */
function find(spans: DecodedSpan[], name: string, step?: string): DecodedSpan {
  const parentOf = (span: DecodedSpan) => spans.find(({ spanId }) => spanId === span.parentSpanId);
  const isOf = (span: DecodedSpan | undefined): boolean =>
    span !== undefined && (span.attributes['countersign.step'] === step || isOf(parentOf(span)));
  const found = spans.filter((span) => span.name === name && (step === undefined || isOf(span)));
  expect(found.map((each) => each.name)).toEqual([name]);
  return found[0] as DecodedSpan;
}

const timeOf = ({ commits }: ShownRun, type: string, step?: string): number => {
  const commit = commits.find(({ events }) =>
    events.some((event) => event.type === type && (step === undefined || ('step' in event && event.step === step))),
  );
  return Date.parse(commit?.at ?? '');
};

it('the trace of an ended run is one request, in the trace of the webhook that started it', async () => {
  expect(await requestsOf(approved.runId)).toHaveLength(1);
  const spans = await spansOf(approved.runId);
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([CALLER.traceId]));
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  const root = find(spans, 'run');
  expect(root).toMatchObject({ parentSpanId: CALLER.spanId, kind: 'SPAN_KIND_SERVER' });
  expect(root.attributes).toMatchObject({
    ...{ 'countersign.tenant': 'acme', 'countersign.run': approved.runId, 'countersign.status': 'succeeded' },
    'countersign.workflow': 'triage-incident',
  });
  const ids = new Set(spans.map(({ spanId }) => spanId));
  expect(spans.filter((span) => span !== root && !ids.has(span.parentSpanId ?? ''))).toEqual([]);
});

it('it has a span for the webhook, each step, decision, approval and request, with its parent and its times', async () => {
  const spans = await spansOf(approved.runId);
  const root = find(spans, 'run');
  const lastCommit = approved.commits.findLast(({ events }) =>
    events.some(({ type }) => type === 'run.status_changed'),
  );
  expect([root.fromMs, root.toMs]).toEqual([approved.createdAt, lastCommit?.at ?? ''].map((at) => Date.parse(at)));
  expect(find(spans, 'session.create')).toMatchObject({
    parentSpanId: root.spanId,
    fromMs: timeOf(approved, 'run.accepted'),
    toMs: timeOf(approved, 'run.enriched'),
    attributes: { 'countersign.source': 'servicenow' },
  });
  const steps = spans.filter(({ name }) => name === 'step.execute');
  expect(steps.map(({ attributes }) => attributes['countersign.step'])).toEqual(approved.steps.map(({ id }) => id));
  expect(new Set(steps.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([root.spanId]));

  const assign = find(spans, 'step.execute', 'assign');
  expect(assign).toMatchObject({
    fromMs: timeOf(approved, 'policy.decided', 'assign'),
    toMs: timeOf(approved, 'step.succeeded', 'assign'),
  });
  const wait = find(spans, 'approval.wait', 'assign');
  expect(wait).toMatchObject({
    parentSpanId: assign.spanId,
    fromMs: timeOf(approved, 'approval.requested'),
    toMs: timeOf(approved, 'approval.decided'),
    attributes: { 'countersign.decision': 'approved' },
  });
  expect(wait.toMs - wait.fromMs).toBeGreaterThan(HOUR_MS);
  // Policy decides before the approval is requested, and again when it is used.
  const decisions = spans.filter(
    ({ name, parentSpanId }) => name === 'policy.decide' && parentSpanId === assign.spanId,
  );
  expect(decisions.map(({ attributes }) => attributes['countersign.verdict'])).toEqual([
    'needs_approval',
    'needs_approval',
  ]);
  expect(decisions.map(({ fromMs }) => fromMs < wait.toMs)).toEqual([true, false]);
  expect(find(spans, 'connector.request', 'assign')).toMatchObject({
    ...{ parentSpanId: assign.spanId, kind: 'SPAN_KIND_CLIENT' },
    fromMs: timeOf(approved, 'step.claimed', 'assign'),
    toMs: timeOf(approved, 'step.succeeded', 'assign'),
    attributes: { 'countersign.tool': 'servicenow.incident.update', 'countersign.attempt': '1' },
  });
});

it('each call to a target carries the span of its attempt; a read before it carries the span of its step', async () => {
  const spans = await spansOf(approved.runId);
  const calls = (await host.calls()).filter(({ traceparent }) => traceparent?.includes(CALLER.traceId));
  const header = ({ spanId }: DecodedSpan) => `00-${CALLER.traceId}-${spanId}-01`;
  const writes = calls.filter(({ method }) => method !== 'GET').map(({ system, traceparent }) => [system, traceparent]);
  expect(writes).toEqual([
    ['servicenow', header(find(spans, 'connector.request', 'assign'))],
    ['servicenow', header(find(spans, 'connector.request', 'note'))],
    ['slack', header(find(spans, 'connector.request', 'post'))],
  ]);
  expect(calls.map(({ traceparent }) => traceparent)).toContain(header(find(spans, 'step.execute', 'assign')));
  // Posting the card is no call of a step.
  const known = new Set(spans.map(header));
  expect(calls.filter(({ traceparent = '' }) => !known.has(traceparent))).toEqual([]);
});

it('the time of an agent is a span: assignment, credentials, command; the assignment carries its parent', async () => {
  const spans = await spansOf(commanded.runId);
  const root = find(spans, 'run');
  expect(`00-${root.traceId}-${root.parentSpanId}-01`).toBe(FROM_CLIENT);
  const attempt = find(spans, 'step.attempt', 'restart');
  expect(assignedTraceparent).toBe(`00-${root.traceId}-${attempt.spanId}-01`);
  const parentSpanId = attempt.spanId;
  const assigned = timeOf(commanded, 'step.assigned');
  expect(find(spans, 'worker.assign')).toMatchObject({ parentSpanId, fromMs: attempt.fromMs, toMs: assigned });
  const fetched = find(spans, 'vault.fetch');
  expect(fetched).toMatchObject({ parentSpanId, fromMs: assigned, toMs: assigned + 250 });
  expect(find(spans, 'agent.command')).toMatchObject({
    ...{ parentSpanId, fromMs: fetched.toMs, toMs: fetched.toMs + 1_500 },
    attributes: { 'countersign.status': 'succeeded', 'countersign.profile': 'dev-flex' },
  });
  expect(attempt.toMs).toBe(timeOf(commanded, 'step.command_ended'));
});

it('the time of a session is a span; its start joins the trace, and the run of its action does', async () => {
  const spans = await spansOf(discussed.runId);
  const root = find(spans, 'run');
  expect(root.parentSpanId).toBeUndefined();
  const session = find(spans, 'agent.session');
  expect(session).toMatchObject({
    parentSpanId: find(spans, 'step.execute', 'triage').spanId,
    fromMs: timeOf(discussed, 'session.started'),
    toMs: timeOf(discussed, 'session.completed'),
    attributes: { 'countersign.configuration': 'triage-agent', 'countersign.outcome': 'succeeded' },
  });
  const start = find(spans, 'connector.request', 'triage');
  const calls = (await host.calls()).filter(({ traceparent }) => traceparent?.includes(root.traceId));
  const ofSessions = calls.filter(({ system }) => system === 'sessions').map(({ traceparent }) => traceparent);
  expect(ofSessions).toContain(`00-${root.traceId}-${start.spanId}-01`);

  const proposed = discussed.commits
    .flatMap(({ events }) => events)
    .find(({ type }) => type === 'session.action_proposed');
  const { actionRunId } = proposed as { actionRunId: string };
  const ofAction = await spansOf(actionRunId);
  expect(find(ofAction, 'run')).toMatchObject({ traceId: root.traceId, parentSpanId: session.spanId });
  const label = find(ofAction, 'connector.request');
  const labels = calls.filter(({ system, method }) => system === 'github' && method === 'POST');
  expect(labels.map(({ traceparent }) => traceparent)).toEqual([`00-${root.traceId}-${label.spanId}-01`]);
});

it('the API, the command line and the log have the trace id', async () => {
  expect(approved.trace).toEqual({ id: CALLER.traceId, url: `/_local/traces?trace=${CALLER.traceId}` });
  const { requests } = await host.ask<{ requests: unknown[] }>('GET', approved.trace.url ?? '');
  expect(requests.flatMap(decodeOtlp)).toEqual(await spansOf(approved.runId));
  const lines = host.log.filter((line) => line.includes(approved.runId) && line.includes('"trace_id"'));
  expect(lines.map((line) => JSON.parse(line.slice(line.indexOf('{')))).map(({ trace_id }) => trace_id)).toEqual([
    CALLER.traceId,
    CALLER.traceId,
  ]);
});

it('a collector that fails changes neither runs nor evidence; what it misses is counted', async () => {
  const dropped = async () => {
    const { metrics } = await host.ask<{ metrics: MetricTotal[] }>('GET', '/_local/metrics');
    const found = metrics.filter(({ name }) => name === METRICS.tracesDropped.name);
    return Object.fromEntries(found.map(({ dimensions, sum }) => [dimensions.status, sum]));
  };
  await host.fault({ service: 'xray', kind: 'error', code: 'ServiceUnavailable', status: 503, times: 'always' });
  const numbers = [201, 202];
  for (const number of numbers) {
    const run = await host.waitForRun(await host.openIssue(number));
    expect(run).toMatchObject({ status: 'succeeded', evidence: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } });
    await host.idle();
    expect(await requestsOf(run.runId)).toEqual([]);
  }
  expect(await dropped()).toEqual({ unreachable: 1, skipped: 1 });
  await host.clearFaults();
  await host.advance(31_000);
  const { runId } = await host.waitForRun(await host.openIssue(203));
  await host.idle();
  expect(await requestsOf(runId)).toHaveLength(1);
  expect(host.log.filter((line) => line.includes('a trace was dropped'))).toHaveLength(1);
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Assignment } from '../../lambdas/agents/assignment.ts';
import { sealRun } from '../../lambdas/evidence/bundle/seal-run.ts';
import { isTerminal, type TerminalRun } from '../../lambdas/run/run.ts';
import { completeSession } from '../../lambdas/run-changes/session/complete-session.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { RunTraces } from '../../lambdas/telemetry/export-traces.ts';
import { type Span, spansOf } from '../../lambdas/telemetry/spans.ts';
import { ALLOWED } from '../fakes/fake-policy.ts';
import { accepted } from '../fakes/story.ts';
import { ASSIGN, GovernedWorkshop } from '../worker/governance/governed-workshop.ts';
import { LABEL } from '../worker/workflows.ts';

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const MINUTE_MS = 60_000;

let shop: GovernedWorkshop;
const opened = async () => {
  shop = await new GovernedWorkshop().open();
  shop.policy.decision = () => ALLOWED;
  vi.stubGlobal('fetch', shop.outside.fetch);
};
beforeEach(opened);
afterEach(() => vi.unstubAllGlobals());

function exporting(): { traces: RunTraces; exported: Span[] } {
  const { clock, log } = shop;
  const exported: Span[] = [];
  const collector = async (spans: readonly Span[]) => void exported.push(...spans);
  const metrics = { record: () => {} };
  return { traces: new RunTraces({ collector, clock, log, sleep: async () => {}, metrics }), exported };
}

/** Seals the run, and returns what the collector received, and the calls to the table and the bucket. */
async function sealed(message: StepMessage, isTraced = true): Promise<{ spans: Span[]; calls: string[] }> {
  const { runs, evidence: store, exports, texts, signer, clock, log } = shop;
  const { traces, exported: spans } = exporting();
  const calls: string[] = [];
  shop.disturb((name, run) => {
    calls.push(name);
    return run();
  });
  const sealer = { runs, store, exports, texts, signer, clock, log, ...(isTraced && { traces }) };
  await sealRun(sealer, { entryId: `acme.${message.runId}.seal_evidence`, ...message });
  return { spans, calls };
}

async function ended(message: StepMessage): Promise<void> {
  for (let look = 0; look < 10 && !isTerminal((await shop.now(message)).run); look += 1) {
    await shop.work(message);
    shop.clock.advance(MINUTE_MS);
  }
}

const named = (spans: readonly Span[], name: string) => spans.filter((span) => span.name === name);
const durations = (spans: readonly Span[]) => spans.map(({ fromMs, toMs }) => toMs - fromMs);

describe('the trace of a run', () => {
  it('has a span for each attempt; the header of each request names its own', async () => {
    shop.outside.next('POST github', { status: 503 });
    const message = await shop.begin(LABEL);
    await ended(message);
    const { spans } = await sealed(message);
    const [step] = named(spans, 'step.execute');
    const attempts = named(spans, 'connector.request');
    expect(attempts.map(({ error, attributes }) => [attributes['countersign.attempt'], error])).toEqual([
      [1, 'OUTCOME_UNKNOWN'],
      [2, undefined],
    ]);
    expect(new Set(attempts.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([step?.spanId]));
    const posts = shop.outside.traceparents.filter(([name]) => name === 'POST github');
    expect(posts.map(([, traceparent]) => traceparent)).toEqual(
      attempts.map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`),
    );
    expect(step?.toMs).toBe(attempts[1]?.toMs);
    expect(attempts[1]?.fromMs).toBeGreaterThan(attempts[0]?.toMs ?? Number.POSITIVE_INFINITY);
  });

  it('has the time of a session, apart from the request that starts it; the request joins the trace', async () => {
    const session = { provider: 'a2a' as const, url: 'http://sessions/agent', connection: 'sessions' };
    await shop.definitions.saveConfiguration('acme', { name: 'bot', session, revision: 1 });
    const step =
      '{ id: triage, tool: agent.session, with: { configuration: bot, prompt: Label it., timeoutSeconds: 5400 } }';
    const message = await shop.begin(`name: triage\nsteps:\n  - ${step}\n`);
    await shop.work(message);
    shop.clock.advance(7 * MINUTE_MS);
    const contract = (shop.outside.sessions.tasks[0]?.messages[0]?.data ?? {}) as Record<string, string>;
    const { completion_id: completionId = '' } = contract;
    await completeSession(
      shop.worker,
      { ...message, stepIndex: 0 },
      { completionId, outcome: 'succeeded', summary: 'done' },
    );
    await ended(message);
    const { spans } = await sealed(message);
    const [execute] = named(spans, 'step.execute');
    const [request] = named(spans, 'connector.request');
    const sessions = named(spans, 'agent.session');
    expect(durations(sessions)).toEqual([7 * MINUTE_MS]);
    expect(sessions[0]).toMatchObject({
      parentSpanId: execute?.spanId,
      attributes: { 'countersign.configuration': 'bot', 'countersign.outcome': 'succeeded' },
    });
    expect(request?.toMs).toBe(sessions[0]?.fromMs);
    const starts = shop.outside.traceparents.filter(([name]) => name === 'POST sessions');
    expect(starts[0]?.[1]).toBe(`00-${request?.traceId}-${request?.spanId}-01`);
  });

  it('has the rollback, with the undo of each write', async () => {
    shop.policy.decision = ({ action }) =>
      (action.tool === 'slack.message.post'
        ? { ...ALLOWED, verdict: 'deny', code: 'POLICY_DENIED', reasons: [] }
        : ALLOWED) as typeof ALLOWED;
    const message = await shop.begin(`
name: undone
onFailure: rollback
steps:
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [one] } }
  - { id: post, tool: slack.message.post, with: { channel: "#incidents", text: hello } }
`);
    await ended(message);
    expect((await shop.now(message)).run.status).toBe('failed_terminal');
    const { spans } = await sealed(message);
    const [rollback] = named(spans, 'rollback.execute');
    const undos = named(spans, 'step.execute').filter(({ attributes }) => attributes['countersign.undo'] === true);
    expect(undos.map(({ parentSpanId }) => parentSpanId)).toEqual([rollback?.spanId]);
    expect(named(spans, 'run')[0]).toMatchObject({
      error: 'POLICY_DENIED',
      attributes: { 'countersign.status': 'failed_terminal' },
    });
  });

  it('is the same whenever it is exported, and its ids differ from those of every other run', async () => {
    const [first, second] = [await shop.begin(LABEL), await shop.begin(LABEL)];
    for (const message of [first, second]) await ended(message);
    const again = exporting();
    const trace = again.traces.begin();
    for await (const row of shop.runs.everyRow('acme', first.runId)) trace.take(row);
    const { run } = await shop.now(first);
    if (isTerminal(run)) await trace.export(run);
    const { spans } = await sealed(first);
    expect(again.exported).toEqual(spans);
    const ids = spans.map(({ spanId }) => spanId);
    expect(ids.length).toBeGreaterThan(3);
    expect((await sealed(second)).spans.filter(({ spanId }) => ids.includes(spanId))).toEqual([]);
  });

  it('needs no request to the table or the bucket', async () => {
    const [first, second] = [await shop.begin(LABEL), await shop.begin(LABEL)];
    for (const message of [first, second]) await ended(message);
    const traced = await sealed(first);
    const without = await sealed(second, false);
    expect(traced.spans.length).toBeGreaterThan(3);
    expect(without.spans).toEqual([]);
    expect(traced.calls).toEqual(without.calls);
    expect(traced.calls.length).toBeGreaterThan(2);
  });
});

it('a span does not reach beyond its run, also if an agent reports a longer duration', () => {
  const { run: queued, commit } = accepted();
  const completedAt = new Date(Date.parse(commit.at) + MINUTE_MS).toISOString();
  const run: TerminalRun = { ...queued, status: 'succeeded', completedAt, durationMs: MINUTE_MS };
  const longest = Number.MAX_SAFE_INTEGER;
  const result = { status: 'succeeded', exitCode: 0, profile: 'small', durationMs: longest };
  const assignment = {
    ...{ stepIndex: 0, leaseVersion: 1, agentName: 'one', acknowledgedAt: commit.at },
    result: { ...result, credentialsUsed: [{ source: 'vault', fetchMs: longest }] },
  } as unknown as Assignment;
  const spans = spansOf({ run, commits: [commit], assignments: [assignment] });
  expect(durations(named(spans, 'vault.fetch'))).toEqual([MINUTE_MS]);
  expect(durations(named(spans, 'agent.command'))).toEqual([0]);
  expect(Math.max(...spans.map(({ toMs }) => toMs))).toBe(Date.parse(completedAt));
});

it('a trace changes neither what is approved and written nor the evidence', async () => {
  const results = [];
  for (const traceparent of [undefined, TRACEPARENT]) {
    await opened();
    shop.policy.decision = () => ({
      ...ALLOWED,
      verdict: 'needs_approval',
      requirement: { tier: 'medium', quorum: 1, groups: [] },
    });
    const { message, approval } = await shop.upToGate(ASSIGN(), traceparent === undefined ? {} : { traceparent });
    await shop.say(approval, 'olivia');
    await ended(message);
    const { spans } = await sealed(message);
    const { receipts, commits, run } = await shop.now(message);
    expect(run.status).toBe('succeeded');
    results.push({
      traceId: spans[0]?.traceId,
      traced: shop.outside.traceparents.filter(([name]) => name === 'PATCH servicenow'),
      hashes: { action: approval.actionHash, head: commits.at(-1)?.hash },
      writes: receipts.map(({ key, requestHash }) => ({ key, requestHash })),
      bundle: shop.evidence.file(run.runId, 'bundle.json').toString(),
    });
  }
  const [plain, joined] = results;
  expect(joined?.traceId).toBe('4bf92f3577b34da6a3ce929d0e0e4736');
  expect(joined?.traced[0]?.[1]).toContain('4bf92f3577b34da6a3ce929d0e0e4736');
  expect(plain?.traceId).not.toBe(joined?.traceId);
  expect(joined?.hashes).toEqual(plain?.hashes);
  expect(joined?.writes).toEqual(plain?.writes);
  expect(plain?.writes).toHaveLength(1);
  expect(joined?.bundle).toBe(plain?.bundle);
});

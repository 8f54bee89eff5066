import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { piped } from '../cli/command-line.ts';
import { isTerminal, type ShownRun } from './harness/host-client.ts';
import {
  asks,
  contractOf,
  ISSUE,
  letMinutesPass,
  misbehave,
  publishSessions,
  rpcCalls,
  sessionOf,
  startSession,
  storedSession,
} from './harness/session-story.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

/** The agent is asked to end a completed session only after this time. */
const ENDS_ITSELF_WITHIN_MS = 10_000;

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost();
  await publishSessions(host);
});
afterAll(() => host.stop());

const label = (name: string) => ({ tool: 'github.labels.add', input: { labels: [name] } });
const labelWrites = async (name: string) =>
  (await host.calls({ system: 'github', method: 'POST' })).filter(({ body }) =>
    JSON.stringify(body).includes(`"${name}"`),
  ).length;
const eventsOf = ({ commits }: ShownRun) => commits.flatMap(({ events }) => events);
const deedsOf = async (runId: string) => (await sessionOf(host, runId)).deeds.map(({ what }) => what);

/** In every case: one session, one prompt, one ending of the session, and the agent was asked to end it. */
async function expectOneSession(runId: string): Promise<void> {
  await host.idle();
  expect(await rpcCalls(host, runId, 'SendMessage')).toBe(1);
  const endings = eventsOf(await host.run(runId)).filter(
    (event) =>
      event.type === 'session.completed' ||
      event.type === 'session.lost' ||
      (event.type === 'step.failed' && event.error.code === 'SESSION_TIMED_OUT'),
  );
  expect(endings).toHaveLength(1);
}

describe('6.4, 6.5: a session of the simulated agent', () => {
  it('is started once and prompted once, proposes actions under policy, completes once, and is ended', async () => {
    const runId = await startSession(host, { actions: [label('from-session')] });
    const run = await host.waitForRun(runId);
    expect(run.status).toBe('succeeded');
    await expectOneSession(runId);
    expect(await labelWrites('from-session')).toBe(1);
    await sessionOf(host, runId, ({ state }) => state !== 'TASK_STATE_WORKING');
    await host.advance(ENDS_ITSELF_WITHIN_MS);
    const { state, cancelRequests } = await sessionOf(host, runId, (each) => each.cancelRequests > 0);
    expect([state, cancelRequests]).toEqual(['TASK_STATE_COMPLETED', 1]);
    const proposed = eventsOf(run).find(({ type }) => type === 'session.action_proposed');
    const action = await host.run((proposed as { actionRunId: string }).actionRunId);
    expect(action).toMatchObject({ status: 'succeeded', receipts: [{ tool: 'github.labels.add' }] });
    // The token of the session is in no record of calls.
    expect(JSON.stringify(await host.calls({ system: 'sessions' }))).not.toContain('cst_');
    expect(JSON.stringify(await host.ask('GET', '/_sim/state'))).not.toContain('cst_');
  });

  it('whose action needs an approval waits for people, and completes afterwards', async () => {
    const dispatch = { tool: 'github.workflow.dispatch', input: { workflow: 'deploy.yml', ref: 'by-session' } };
    const runId = await startSession(host, { actions: [dispatch] });
    const run = await host.waitForRun(runId, (shown) =>
      eventsOf(shown).some(({ type }) => type === 'session.action_proposed'),
    );
    const proposed = eventsOf(run).find(({ type }) => type === 'session.action_proposed');
    const { actionRunId } = proposed as { actionRunId: string };
    expect((await host.run(runId)).status).toBe('waiting_external');
    await host.approve(actionRunId);
    expect((await host.waitForRun(actionRunId)).status).toBe('succeeded');
    expect((await host.waitForRun(runId)).status).toBe('succeeded');
    expect(await deedsOf(runId)).toContain('proposed github.workflow.dispatch: waiting_approval');
  });

  it('that reaches beyond its step is refused and counted; nothing is written', async () => {
    const elsewhere = { tool: 'github.labels.add', input: { ...ISSUE, number: 8, labels: ['elsewhere'] } };
    const other = { tool: 'github.issue.close', input: ISSUE };
    const runId = await startSession(host, { actions: [elsewhere, other] });
    const run = await host.waitForRun(runId);
    expect(eventsOf(run).flatMap((event) => (event.type === 'session.action_refused' ? [event.because] : []))).toEqual([
      'input_not_allowed',
      'tool_not_allowed',
    ]);
    expect(await labelWrites('elsewhere')).toBe(0);
  });

  it('that proposes endlessly gets as many actions as its step allows', async () => {
    const names = Array.from({ length: 30 }, (_, place) => `endless-${place}`);
    const runId = await startSession(host, { actions: names.map(label) });
    const run = await host.waitForRun(runId);
    const refused = eventsOf(run).filter(({ type }) => type === 'session.action_refused');
    // Twenty refusals are recorded; the others are counted as a metric only.
    expect(refused).toHaveLength(20);
    const written = await Promise.all(names.map(labelWrites));
    expect(written.filter((times) => times === 1)).toHaveLength(3);
  });

  it.each([
    ['failed', 'failed_terminal', 'SESSION_FAILED'],
    ['needs_human', 'needs_human', 'SESSION_NEEDS_HUMAN'],
  ])('that reports %s ends the run as %s', async (outcome, status, code) => {
    const runId = await startSession(host, { outcome });
    expect(await host.waitForRun(runId)).toMatchObject({ status, error: { code } });
    await expectOneSession(runId);
  });

  it('that completes twice counts once: the repetition changes nothing, and another content is refused', async () => {
    await misbehave(host, 'completes_twice');
    const runId = await startSession(host);
    expect((await host.waitForRun(runId)).status).toBe('succeeded');
    await sessionOf(host, runId, ({ deeds }) => deeds.some(({ what }) => what.includes('MISMATCH')));
    const completions = (await deedsOf(runId)).filter((what) => what.startsWith('completed'));
    expect(completions).toEqual(['completed: 200', 'completed: 200', 'completed: 422 COMPLETION_MISMATCH']);
    await expectOneSession(runId);
  });

  it('that reports another run is refused, and its own run fails', async () => {
    const other = await startSession(host);
    await host.waitForRun(other);
    const { seq } = (await host.run(other)).head;
    await misbehave(host, 'reports_another_run');
    const runId = await startSession(host);
    await sessionOf(host, runId, ({ state }) => state !== 'TASK_STATE_WORKING');
    const [run] = await host.letTimePassUntil([runId], isTerminal);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'SESSION_LOST' } });
    expect(await deedsOf(runId)).toEqual(
      expect.arrayContaining([
        'completed another run: 404 NOT_FOUND',
        'completed with another id: 422 COMPLETION_MISMATCH',
      ]),
    );
    expect((await host.run(other)).head.seq).toBe(seq);
    await expectOneSession(runId);
  });

  it('that its agent rejects fails the run at once', async () => {
    await misbehave(host, 'refuses');
    const runId = await startSession(host);
    expect(await host.waitForRun(runId)).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'TARGET_REFUSED' },
    });
    expect(await rpcCalls(host, runId, 'SendMessage')).toBe(1);
    expect(eventsOf(await host.run(runId)).map(({ type }) => type)).not.toContain('session.started');
  });

  it('whose start was made but whose response was lost is found, and not started again', async () => {
    await host.simulatedFault({ system: 'sessions', method: 'POST', kind: 'lost_answer' });
    const runId = await startSession(host);
    const [run] = await host.letTimePassUntil([runId], isTerminal);
    expect(run?.status).toBe('succeeded');
    expect(run && eventsOf(run)).toContainEqual(expect.objectContaining({ type: 'write.settled', recovered: true }));
    await expectOneSession(runId);
  });

  it('whose agent is not reachable at first is started later, once', async () => {
    await host.simulatedFault({ system: 'sessions', kind: 'status', status: 503, times: 2 });
    const runId = await startSession(host);
    const [run] = await host.letTimePassUntil([runId], isTerminal);
    expect(run?.status).toBe('succeeded');
    await expectOneSession(runId);
  });

  it('is not started with a credential that the agent does not know', async () => {
    const { status } = await host.request('GET', '/_sim/sessions/.well-known/agent-card.json', {
      headers: { authorization: 'Bearer stolen' },
    });
    expect(status).toBe(401);
  });
});

describe('an operator', () => {
  it('cancels one session: its step fails, the timeline says who, and the agent ends the session; a member may not', async () => {
    await misbehave(host, 'silent');
    const runId = await startSession(host);
    await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
    const body = JSON.stringify({ step: 'triage', reason: 'not needed' });
    const cancel = (key: string) =>
      host.request('POST', `/api/v1/runs/${runId}/cancel-session`, { headers: { 'x-api-key': key }, body });
    expect((await cancel('local-member-key')).status).toBe(403);
    expect((await cancel('local-operator-key')).status).toBe(200);
    const run = await host.waitForRun(runId);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'SESSION_CANCELED' } });
    expect(eventsOf(run)).toContainEqual(
      expect.objectContaining({ type: 'session.canceled', step: 'triage', actor: 'oscar', reason: 'not needed' }),
    );
    await sessionOf(host, runId, ({ state }) => state === 'TASK_STATE_CANCELED');
    expect((await cancel('local-operator-key')).status).toBe(409);
  });

  it('cancels one session on the command line, which prints the status of the run, and refuses a session that is not open', async () => {
    await misbehave(host, 'silent');
    const runId = await startSession(host);
    await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
    const cli = (...options: string[]) =>
      piped(['runs', 'cancel-session', runId, ...options], {
        COUNTERSIGN_URL: host.url,
        COUNTERSIGN_API_KEY: 'local-operator-key',
      });
    const other = await cli('--step', 'done');
    expect([other.exitCode, other.stdout]).toEqual([1, '']);
    expect(other.stderr).toContain('step done of this run does not have an open session');
    expect((await host.run(runId)).status).toBe('waiting_external');
    expect(await cli('--step', 'triage', '--reason', 'works too long')).toEqual({
      exitCode: 0,
      stdout: `${runId} is failed_terminal\n`,
      stderr: '',
    });
    expect(eventsOf(await host.run(runId))).toContainEqual(
      expect.objectContaining({ type: 'session.canceled', step: 'triage', actor: 'oscar', reason: 'works too long' }),
    );
    await sessionOf(host, runId, ({ state }) => state === 'TASK_STATE_CANCELED');
    const again = await cli();
    expect(again.exitCode).toBe(1);
    expect(again.stderr).toContain('the run has ended as failed_terminal');
  });
});

describe('6.6: the finalizer ends the run of a session that', () => {
  it.each([
    ['dies', 'dead'],
    ['ends_early', 'ended'],
  ] as const)('%s soon after its agent says so', async (behavior, because) => {
    await misbehave(host, behavior);
    const runId = await startSession(host);
    await sessionOf(host, runId, ({ state }) => state !== 'TASK_STATE_WORKING');
    await host.waitForRun(runId, (run) => eventsOf(run).some(({ type }) => type === 'session.seen'));
    await letMinutesPass(host, 2, 1);
    const run = await host.waitForRun(runId);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'SESSION_LOST' } });
    expect(eventsOf(run)).toContainEqual(expect.objectContaining({ type: 'session.lost', because }));
    await expectOneSession(runId);
  });

  it.each([
    ['disappears', 'missing'],
    ['silent', 'silent'],
  ] as const)('%s after 30 minutes', async (behavior, because) => {
    await misbehave(host, behavior);
    const runId = await startSession(host);
    await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
    await letMinutesPass(host, 25);
    expect((await host.run(runId)).status).toBe('waiting_external');
    await letMinutesPass(host, 10);
    const run = await host.waitForRun(runId);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'SESSION_LOST' } });
    expect(eventsOf(run)).toContainEqual(expect.objectContaining({ type: 'session.lost', because }));
    if (because === 'silent') await sessionOf(host, runId, ({ state }) => state === 'TASK_STATE_CANCELED');
  });

  it('completes after the deadline as timed out; the late completion is refused', async () => {
    await misbehave(host, 'completes_late');
    const runId = await startSession(host);
    await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
    await letMinutesPass(host, 95);
    const run = await host.waitForRun(runId);
    expect(run).toMatchObject({ status: 'timed_out', error: { code: 'SESSION_TIMED_OUT' } });
    expect((await deedsOf(runId)).filter((what) => what.startsWith('completed: 2'))).toEqual([]);
    await expectOneSession(runId);
  });

  it('cannot be asked about stays as it is until the agent answers', async () => {
    await misbehave(host, 'silent');
    const runId = await startSession(host);
    await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
    await host.simulatedFault({ system: 'sessions', kind: 'status', status: 503, times: 100 });
    await letMinutesPass(host, 40, 10);
    expect((await host.run(runId)).status).toBe('waiting_external');
    await host.ask('GET', '/_sim/state');
    await host.request('DELETE', '/_sim/faults');
    await letMinutesPass(host, 2, 1);
    expect((await host.waitForRun(runId)).error?.code).toBe('SESSION_LOST');
  });

  it('works for long, with signs of life, not at all: it completes', async () => {
    await misbehave(host, 'slow');
    const runId = await startSession(host);
    await host.waitForRun(runId, ({ status }) => status === 'waiting_external');
    // It begins its work after the first step, and works for 40 minutes.
    await letMinutesPass(host, 60);
    expect((await host.waitForRun(runId)).status).toBe('succeeded');
    await expectOneSession(runId);
  });
});

describe('an automation with instructions', () => {
  const WHO = { strategy: 'agent_decide', allow: ['triage-agent'], fallback: 'triage-agent' };
  const save = (name: string, body: object) =>
    asks<{ workflow: object }>(host, 'PUT', `/automations/${name}`, {
      triggers: [{ source: 'manual' }],
      instructions: 'Triage the issue of the run {% run.id %}.',
      ...body,
    });
  const runNow = async (name: string) =>
    (await asks<{ runId: string }>(host, 'POST', `/automations/${name}/run`, { title: 'Refunds are booked twice' }))
      .runId;

  it('runs one session with them, which acts within its limits under policy; its runs are listed', async () => {
    const actions = [{ tool: 'github.labels.add', with: ISSUE }];
    const script = JSON.stringify({ actions: [label('instructed'), label('one-too-many')] });
    const saved = await save('triage-by-words', {
      configuration: WHO,
      session: { actions, maxActions: 1, context: { script } },
      caps: { maxWritesPerRun: 3 },
    });
    expect(saved.workflow).toEqual({ name: 'automation.triage-by-words', version: 1 });
    const runId = await runNow('triage-by-words');
    const run = await host.waitForRun(runId);
    expect(run).toMatchObject({ status: 'succeeded', automation: 'triage-by-words', workflow: saved.workflow });
    await expectOneSession(runId);
    expect(storedSession(host, runId).prompt).toContain(`Triage the issue of the run ${runId}.`);
    // This host has no model, so the fallback is used, and the event says so before the step starts.
    const types = eventsOf(run).map(({ type }) => type);
    expect(types.indexOf('run.target_resolved')).toBeLessThan(types.indexOf('step.claimed'));
    expect(eventsOf(run)).toContainEqual(
      expect.objectContaining({ type: 'run.target_resolved', configuration: 'triage-agent', via: 'fallback' }),
    );
    expect(await labelWrites('instructed')).toBe(1);
    expect(await labelWrites('one-too-many')).toBe(0);
    const proposed = eventsOf(run).flatMap((event) =>
      event.type === 'session.action_proposed' ? [event.actionRunId] : [],
    );
    const { runs } = (await host.api<{ runs: { runId: string }[] }>('/runs?automation=triage-by-words')).body;
    expect(runs.map((each) => each.runId).toSorted()).toEqual([runId, ...proposed].toSorted());
  });

  it('gives its session what is known of the event, if it has no context of its own', async () => {
    await save('ask-a-person', { configuration: { strategy: 'fixed', default: 'triage-agent' } });
    const runId = await runNow('ask-a-person');
    // The simulated agent finds no issue in this context, and says so.
    expect((await host.waitForRun(runId)).error?.code).toBe('SESSION_NEEDS_HUMAN');
    expect(contractOf(host, runId).context).toMatchObject({
      title: 'Refunds are booked twice',
      source: 'manual',
      event: 'run.requested',
    });
  });
});

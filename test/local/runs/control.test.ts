import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { localSecret } from '../../../bin/commands/local-stage.ts';
import { signedHeaders } from '../../../bin/commands/webhook/sign-delivery.ts';
import { trustedKeys } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../../lambdas/evidence/verify/verify-bundle.ts';
import { DUE_TIME_STEP_MS } from '../../../lambdas/run/run-store.ts';
import { publish } from '../harness/definitions.ts';
import { eventually } from '../harness/eventually.ts';
import { ACME_KEY, type Answer, type ListedRun } from '../harness/host-client.ts';
import { labelWrites } from '../harness/seen-writes.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

let host: TestHost;
let issue = 0;

const label = (id: string, more: object = {}) => ({
  id,
  tool: 'github.labels.add',
  with: { owner: 'octo-org', repo: 'payments', number: '{% trigger.number %}', labels: [id] },
  ...more,
});

beforeAll(async () => {
  host = await startTestHost();
  const signal = { id: 'confirmed', tool: 'wait.external', with: { event: 'confirmed', timeoutSeconds: 3600 } };
  await publish(host, { name: 'wait-then-label', event: 'issues.closed', steps: [signal, label('after')] });
  await publish(host, {
    name: 'diamond',
    event: 'issues.reopened',
    steps: [
      label('first'),
      label('left', { needs: ['first'] }),
      label('right', { needs: ['first'] }),
      label('last', { needs: ['left', 'right'] }),
    ],
  });
  const wait = { id: 'nap', tool: 'wait', with: { seconds: 300 } };
  await publish(host, { name: 'nap-then-label', event: 'issues.pinned', steps: [wait, label('awake')] });
  await publish(host, {
    name: 'pause-on-failure',
    event: 'issues.locked',
    onFailure: 'pause',
    steps: [label('doomed', { retry: { attempts: 1 } })],
  });
});
afterAll(() => host.stop());

async function start(action: string): Promise<{ runId: string; number: number }> {
  issue += 1;
  const number = 5000 + issue;
  const { body, text } = await host.sendGithub({
    action,
    issue: { number, title: `Issue ${number}` },
    repository: { name: 'payments', full_name: 'octo-org/payments' },
  });
  const [runId] = body.runIds ?? [];
  if (!runId) throw new Error(text);
  return { runId, number };
}

function command(
  runId: string,
  name: string,
  body: object = {},
  key = ACME_KEY,
): Promise<Answer<ListedRun & { code: string }>> {
  return host.request('POST', `/api/v1/runs/${runId}/${name}`, {
    headers: { 'x-api-key': key },
    body: JSON.stringify(body),
  });
}

const waitFor = (runId: string, status: string) => host.waitForRun(runId, (run) => run.status === status);

describe('a signal', () => {
  it('ends the wait of its step, passes its payload, and the run continues', async () => {
    const { runId, number } = await start('closed');
    await waitFor(runId, 'waiting_external');
    expect((await command(runId, 'signal', { event: 'other' })).status).toBe(409);
    expect((await command(runId, 'signal', { event: 'confirmed', payload: { by: 'a test' } })).status).toBe(200);
    const run = await host.waitForRun(runId);
    expect(run.status).toBe('succeeded');
    expect(run.steps[0]).toMatchObject({ status: 'succeeded', output: { by: 'a test' } });
    expect(labelWrites(await host.calls(), number)).toBe(1);
  });

  it('that does not arrive ends the run as timed out, and nothing is written', async () => {
    const { runId, number } = await start('closed');
    await waitFor(runId, 'waiting_external');
    await host.advance(3_600_000 + DUE_TIME_STEP_MS);
    const run = await host.waitForRun(runId);
    expect(run).toMatchObject({ status: 'timed_out', error: { code: 'WAIT_TIMED_OUT' } });
    expect(labelWrites(await host.calls(), number)).toBe(0);
  });
});

it('a wait ends at its time', async () => {
  const { runId, number } = await start('pinned');
  await waitFor(runId, 'waiting_external');
  await host.advance(301_000);
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  expect(labelWrites(await host.calls(), number)).toBe(1);
});

it('steps without open needs run at the same time, and the last one after both', async () => {
  const { runId, number } = await start('reopened');
  const run = await host.waitForRun(runId);
  expect(run.status).toBe('succeeded');
  const claims = run.commits.map(({ events }) =>
    events.flatMap((event) => (event.type === 'step.claimed' ? [event.step] : [])),
  );
  expect(claims.filter((steps) => steps.length > 0)).toEqual([['first'], ['left', 'right'], ['last']]);
  expect(labelWrites(await host.calls(), number)).toBe(4);
});

it('a run that has ended is assigned and rolled back by another run, and both leave evidence that verifies', async () => {
  const { runId, number } = await start('reopened');
  await host.waitForRun(runId);
  expect((await command(runId, 'assign', {}, 'local-member-key')).body).toMatchObject({ assignee: 'chloe' });
  expect((await command(runId, 'assign', {})).status).toBe(409);
  expect((await command(runId, 'assign', { assignee: 'olivi' })).status).toBe(400);
  const { body } = await command(runId, 'rollback', { reason: 'not wanted' });
  const rolledBackBy = String((body as unknown as { rolledBackBy: string }).rolledBackBy);
  expect((await command(runId, 'rollback')).body).toMatchObject({ rolledBackBy, status: 'succeeded' });
  const rollback = await host.waitForRun(rolledBackBy);
  expect(rollback).toMatchObject({ status: 'succeeded', rollbackOf: runId });
  expect(rollback.steps.map(({ id }) => id)).toHaveLength(4);
  const undone = (await host.calls()).filter(
    ({ method, path }) => method === 'DELETE' && path.includes(`/issues/${number}/labels/`),
  );
  expect(undone).toHaveLength(4);
  const evidence = await eventually('both addenda are sealed', async () => {
    const found = await host.api<{ addenda: { seq: number }[] }>(`/runs/${runId}/evidence`);
    return found.body.addenda.length === 2 ? found.body : undefined;
  });
  const file = async (path: string) => Buffer.from((await host.api(`/runs/${runId}/evidence/${path}`)).text);
  const addenda = await Promise.all(
    evidence.addenda.map(async ({ seq }) => ({
      name: String(seq),
      document: await file(`addenda/${seq}/addendum.json`),
      envelope: await file(`addenda/${seq}/addendum.dsse.json`),
    })),
  );
  const keys = trustedKeys((await host.request('GET', '/.well-known/countersign-keys.json')).text);
  const bundle = { document: await file('bundle.json'), envelope: await file('bundle.dsse.json') };
  expect(verifyBundle({ ...bundle, keys, addenda })).toMatchObject({ verdict: 'valid', summary: { addenda: 2 } });
});

describe('cancel', () => {
  it('ends a waiting run, closes its approval, and nothing is written afterwards', async () => {
    const { runId, number } = await start('closed');
    await waitFor(runId, 'waiting_external');
    const answer = await command(runId, 'cancel', { reason: 'not needed any more' });
    expect(answer).toMatchObject({ status: 200, body: { status: 'canceled' } });
    expect((await command(runId, 'signal', { event: 'confirmed' })).body.code).toBe('RUN_TERMINAL_STATE');
    const run = await host.waitForRun(runId);
    expect(run.steps.map(({ status }) => status)).toEqual(['canceled', 'pending']);
    await host.advance(7_200_000);
    await host.sweep();
    await host.idle();
    expect(await host.run(runId)).toEqual(run);
    expect(labelWrites(await host.calls(), number)).toBe(0);
  });

  it('of a run whose worker was killed during a write waits until no worker can be writing', async () => {
    await host.fault({ function: 'WorkerStep', operation: 'TransactWriteItems', nth: 2, kind: 'crash_before' });
    const { runId, number } = await start('reopened');
    await host.idle();
    expect(await command(runId, 'cancel')).toMatchObject({ status: 200, body: { status: 'running' } });
    const [run] = await host.letTimePassUntil([runId], ({ status }) => status === 'canceled');
    await host.clearFaults();
    expect(run?.receipts).toMatchObject([{ stepId: 'first', outcome: 'unknown' }]);
    expect(labelWrites(await host.calls(), number)).toBe(1);
  });
});

it('a paused run makes no write until it is resumed', async () => {
  const { runId, number } = await start('pinned');
  await waitFor(runId, 'waiting_external');
  expect((await command(runId, 'pause')).body.status).toBe('paused');
  await host.advance(301_000);
  await host.sweep();
  await host.idle();
  expect((await host.run(runId)).status).toBe('paused');
  expect(labelWrites(await host.calls(), number)).toBe(0);
  expect((await command(runId, 'resume')).status).toBe(200);
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  expect(labelWrites(await host.calls(), number)).toBe(1);
});

it('only an operator can retry a failed step', async () => {
  await host.simulatedFault({ system: 'github', method: 'POST', kind: 'status', status: 422 });
  const { runId, number } = await start('locked');
  await waitFor(runId, 'paused');
  expect((await command(runId, 'retry', {}, 'local-member-key')).status).toBe(403);
  expect((await command(runId, 'retry', {}, 'local-globex-owner-key')).status).toBe(404);
  expect((await command(runId, 'retry', {}, 'local-operator-key')).status).toBe(200);
  expect((await host.waitForRun(runId)).status).toBe('succeeded');
  expect(labelWrites(await host.calls(), number)).toBe(2);
});

it('a run that paused after a failed step can be canceled', async () => {
  await host.simulatedFault({ system: 'github', method: 'POST', kind: 'status', status: 422 });
  const { runId } = await start('locked');
  await waitFor(runId, 'paused');
  expect((await command(runId, 'cancel')).body.status).toBe('canceled');
});

it('a command that does not fit the run is refused with the reason', async () => {
  const { runId } = await start('closed');
  await waitFor(runId, 'waiting_external');
  expect((await command(runId, 'resume')).body).toMatchObject({ status: 409, code: 'RUN_INVALID_TRANSITION' });
  expect((await command(runId, 'retry')).body).toMatchObject({ status: 409, code: 'RUN_INVALID_TRANSITION' });
  expect((await command(runId, 'cancel', { why: 'unknown field' })).body).toMatchObject({ status: 400 });
  // A whole id: `run_00` would be the beginning of every 256th one.
  expect((await command(`run_${'0'.repeat(32)}`, 'cancel')).body).toMatchObject({ status: 404 });
  await command(runId, 'cancel');
});

describe('runs that people and programs start', () => {
  const ISSUE = '{owner: octo-org, repo: payments, number: "{% inputs.issue %}"';
  const INPUTS = 'inputs: {issue: {type: integer, required: true}, text: {type: string, default: hello}}';
  const COMMENT = `name: comment-now\n${INPUTS}\nsteps:\n  - {id: comment, tool: github.comment.create, dedupeScope: run, with: ${ISSUE}, body: "{% inputs.text %}"}}\n`;
  const LABEL = `name: label-now\n${INPUTS}\nsteps:\n  - {id: label, tool: github.labels.add, with: ${ISSUE}, labels: ["{% inputs.text %}"]}}\n`;
  interface Started {
    runId: string;
    code: string;
  }

  const ask = (method: string, path: string, body: unknown = {}, headers: Record<string, string> = {}) =>
    host.request<Started>(method, `/api/v1${path}`, {
      headers: { 'x-api-key': ACME_KEY, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const made = async (answer: Promise<Answer<Started>>, status = 200) => {
    const { status: got, text, body } = await answer;
    if (got !== status) throw new Error(`${got} ${text}`);
    return body;
  };
  const comments = async (number: number) =>
    (await host.calls({ system: 'github', method: 'POST' })).filter(({ path }) =>
      path.endsWith(`/issues/${number}/comments`),
    ).length;
  const succeeded = async (runId: string) => expect((await host.waitForRun(runId)).status).toBe('succeeded');

  beforeAll(async () => {
    await host.trustAutomations();
    for (const file of [COMMENT, LABEL]) {
      await made(ask('POST', '/workflows', file, { 'content-type': 'application/yaml' }), 201);
    }
    const workflow = { name: 'comment-now', version: 1 };
    await made(ask('PUT', '/automations/comment-now', { trigger: { source: 'manual' }, workflow }));
    await made(ask('PUT', '/sources/alerts', { title: 'Alert', event: '{% trigger.payload.status %}' }));
    const trigger = { source: 'generic', event: 'alerts.firing' };
    const inputs = { issue: '{% trigger.payload.issue %}' };
    await made(ask('PUT', '/automations/on-alert', { trigger, workflow, inputs }));
    await host.advance(61_000);
  });

  it('a request starts one run for its key; a rerun writes again, a replay writes nothing again', async () => {
    const request = { workflow: { name: 'comment-now' }, inputs: { issue: 6001 } };
    const key = { 'idempotency-key': 'deploy-1' };
    const first = await made(ask('POST', '/runs', request, key), 201);
    expect(await made(ask('POST', '/runs', request, key))).toEqual(first);
    const other = await ask('POST', '/runs', { ...request, title: 'Another' }, key);
    expect([other.status, other.body.code]).toEqual([422, 'IDEMPOTENCY_CONFLICT']);
    await succeeded(first.runId);
    expect(await comments(6001)).toBe(1);

    const replay = await made(ask('POST', `/runs/${first.runId}/replay`, { step: 'comment' }), 201);
    await succeeded(replay.runId);
    expect(await comments(6001)).toBe(1);
    const rerun = await made(ask('POST', `/runs/${first.runId}/rerun`), 201);
    await succeeded(rerun.runId);
    expect(await comments(6001)).toBe(2);
  });

  it('a slot of a schedule starts one run, although it is swept twice', async () => {
    const schedule = { automation: 'comment-now', rate: '1 hour', inputs: { issue: 6002 } };
    await made(ask('PUT', '/schedules/hourly', schedule));
    const shown = async () =>
      (await host.api<{ nextRuns: string[]; lastRun: { slot: string; runId: string } }>('/schedules/hourly')).body;
    const { nextRuns } = await shown();
    await host.advance(Date.parse(nextRuns[0] ?? '') - (await host.now()) + 1_000);
    // The rules that are due run by themselves. Without this, the first sweep would run at the same time as they do.
    await host.idle();
    await host.sweep();
    await host.sweep();
    const { lastRun } = await shown();
    expect(lastRun.slot).toBe(nextRuns[0]);
    await succeeded(lastRun.runId);
    expect(await comments(6002)).toBe(1);
    await made(ask('DELETE', '/schedules/hourly'));
  });

  it('a signed webhook of an own source starts its run once', async () => {
    const body = JSON.stringify({ status: 'firing', issue: 6003 });
    const secret = localSecret('generic/alerts', 'acme');
    const facts = { secret, id: 'alert-1', event: '', nowMs: await host.now() };
    const headers = signedHeaders('generic/alerts', Buffer.from(body), facts);
    const path = '/webhooks/generic/acme/alerts';
    const { status, body: accepted } = await host.send({ path, headers, body });
    expect([status, accepted.runIds?.length]).toEqual([202, 1]);
    expect((await host.send({ path, headers, body })).body).toEqual({ runIds: accepted.runIds, deduplicated: true });
    expect((await host.send({ path, headers, body: `${body} ` })).status).toBe(401);
    await succeeded(accepted.runIds[0] ?? '');
    expect(await comments(6003)).toBe(1);
  });

  it('a saved plan starts one run, which writes what it showed; a plan whose target changed starts none', async () => {
    const workflow = { name: 'label-now' };
    const planned = async (text: string) => {
      const wanted = { workflow, inputs: { issue: 6004, text }, subject: 'INC6004', save: true };
      const { planHash } = (await made(ask('POST', '/workflows/simulate', wanted))) as unknown as { planHash: string };
      return planHash;
    };
    const [first, stale] = [await planned('planned'), await planned('stale')];
    expect(labelWrites(await host.calls(), 6004)).toBe(0);
    const applied = await made(ask('POST', `/plans/${first}/apply`), 201);
    await succeeded(applied.runId);
    expect(labelWrites(await host.calls(), 6004)).toBe(1);
    expect(await made(ask('POST', `/plans/${first}/apply`))).toEqual(applied);
    expect((await host.run(applied.runId)).subject).toBe('INC6004');

    const other = await made(ask('POST', '/runs', { workflow, inputs: { issue: 6004, text: 'stale' } }), 201);
    await succeeded(other.runId);
    const { status, body } = await ask('POST', `/plans/${stale}/apply`);
    expect([status, body.code]).toEqual([409, 'PLAN_DRIFTED']);
    expect(labelWrites(await host.calls(), 6004)).toBe(2);
  });
});

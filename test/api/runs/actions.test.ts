import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RouteDefinition } from '../../../lambdas/api/contract/route.ts';
import { actionRoutes, directActionRoutes, sessionRoutes } from '../../../lambdas/api/contract/runs/actions.ts';
import { handleControl } from '../../../lambdas/api/runs/control.ts';
import { handleRuns } from '../../../lambdas/api/runs/runs.ts';
import { handleStart } from '../../../lambdas/api/start/start.ts';
import { type HttpEvent, Problem } from '../../../lambdas/entry/http.ts';
import { isoNow } from '../../../lambdas/entry/ports.ts';
import { ClosedSessions } from '../../../lambdas/run-changes/session/closed-sessions.ts';
import { sealSessionToken } from '../../../lambdas/run-changes/session/session-token.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { outputPorts } from '../../fakes/memory/memory-output.ts';
import { DENIED, GovernedWorkshop, needsApproval } from '../../worker/governance/governed-workshop.ts';
import { type BegunSession, beginWithSession, ISSUE_FIELDS } from '../../worker/session/open-session.ts';
import { ISSUE } from '../../worker/workshop.ts';
import { eventFor } from '../every-route.ts';

const SECRET = 'a secret of the stage';
const OPERATOR = { tenant: 'acme', person: 'oscar', role: 'operator' as const };
const LABEL = { tool: 'github.labels.add', input: { ...ISSUE_FIELDS, labels: ['triage'] } };

let shop: GovernedWorkshop;
let requests = 0;
let closedSessions: ClosedSessions;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  closedSessions = new ClosedSessions();
  shop.policy.decision = () => ALLOWED;
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

interface Sent {
  params?: Record<string, string>;
  query?: Record<string, string>;
  body?: unknown;
  headers?: Record<string, string>;
  as?: typeof OPERATOR;
}

/** Sends a request to the function that handles the route. A refusal is a response, too. */
async function send(route: RouteDefinition, { params, body, query, headers = {}, as = OPERATOR }: Sent = {}) {
  const event = { ...eventFor(route, as, { params, body }), headers, queryStringParameters: query } as HttpEvent;
  const ids = { next: (prefix: string) => `${prefix}_${(++requests).toString(16).padStart(32, 'a')}` };
  const ports = {
    ...shop.worker,
    ids,
    definitions: shop.definitions,
    sessionSecret: async () => SECRET,
    notices: shop.runs.notices,
    closedSessions,
  };
  const handle = () => {
    if (Object.values(actionRoutes).includes(route as never)) {
      return handleRuns({ ...ports, ...outputPorts(shop.clock), cursorSecret: async () => 'secret' }, event);
    }
    return route === directActionRoutes.proposeAction ? handleStart(ports, event) : handleControl(ports, event);
  };
  try {
    const { statusCode, body: text } = await handle();
    return { status: statusCode, body: JSON.parse(text ?? '') };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { status: error.status, body: { code: error.code, detail: error.message }, headers: error.headers };
  }
}

const direct = (body: unknown, key?: string) =>
  send(directActionRoutes.proposeAction, { body, ...(key && { headers: { 'idempotency-key': key } }) });
const read = (id: string) => send(actionRoutes.getAction, { params: { id } });
const work = (runId: string) => shop.work({ tenant: 'acme', runId });

describe('an action that a person or program proposes', () => {
  it('is made when policy allows it, and returns its result', async () => {
    const { status, body } = await direct(LABEL, 'one');
    expect(status).toBe(201);
    expect(body).toMatchObject({ status: 'pending', session: null, requestedBy: 'oscar' });
    await work(body.actionId);
    expect((await read(body.actionId)).body).toMatchObject({
      status: 'succeeded',
      target: 'github:octo-org/payments#7',
      approval: null,
    });
    expect(shop.outside.issueLabels.get(ISSUE)).toContain('triage');
    const { run } = await shop.now({ tenant: 'acme', runId: body.actionId });
    expect(run).toMatchObject({ automation: 'countersign.action', workflow: { name: 'countersign.action' } });
  });

  it('returns the approval that it waits for, which its requester cannot give, and continues after it', async () => {
    shop.policy.decision = () => needsApproval();
    const { body } = await direct(LABEL);
    await work(body.actionId);
    const waiting = (await read(body.actionId)).body;
    expect(waiting).toMatchObject({ status: 'waiting_approval', reasons: ['somebody must look at it'] });
    const approval = await shop.openApproval({ tenant: 'acme', runId: body.actionId });
    expect(waiting.approval).toMatchObject({ approvalId: approval.approvalId });
    expect(approval.makers).toContain('oscar');
    await shop.say(approval, 'olivia');
    await work(body.actionId);
    expect((await read(body.actionId)).body.status).toBe('succeeded');
  });

  it('returns the reasons of policy when it is denied', async () => {
    shop.policy.decision = () => DENIED;
    const { body } = await direct(LABEL);
    await work(body.actionId);
    expect((await read(body.actionId)).body).toMatchObject({ status: 'denied', reasons: ['not on my watch'] });
    expect(shop.writes()).toEqual([]);
  });

  it('with the same key is one action; another one with the key is refused', async () => {
    const first = await direct(LABEL, 'same');
    expect(await direct(LABEL, 'same')).toMatchObject({ status: 200, body: { actionId: first.body.actionId } });
    expect(await direct({ ...LABEL, title: 'other' }, 'same')).toMatchObject({
      status: 422,
      body: { code: 'IDEMPOTENCY_CONFLICT' },
    });
  });

  it('is refused beyond 60 in a minute, with the time after which to try again', async () => {
    for (let made = 0; made < 60; made += 1) expect(await direct(LABEL)).toMatchObject({ status: 201 });
    shop.clock.advance(61_000 - (shop.clock.now() % 60_000));
    for (let made = 0; made < 60; made += 1) await direct(LABEL);
    expect(await direct(LABEL)).toMatchObject({
      status: 429,
      body: { code: 'RATE_EXCEEDED', detail: 'you may propose 60 actions a minute, and have; try again in 59 s' },
      headers: { 'retry-after': '59' },
    });
  });

  it.each([
    ['an unknown tool', { tool: 'github.labels.ad', input: {} }, 'did you mean "github.labels.add"?'],
    ['an undo', { tool: 'github.comment.delete', input: {} }, ''],
    ['an input that does not fit', { tool: LABEL.tool, input: { labels: ['x'] } }, 'owner'],
  ])('is refused at once with %s', async (_name, body, text) => {
    const refused = await direct(body);
    expect(refused).toMatchObject({ status: 400 });
    expect(refused.body.detail).toContain(text);
  });
});

describe('the token of a session', () => {
  let parent: BegunSession;
  beforeEach(async () => {
    parent = await beginWithSession(shop);
  });

  const token = (differing: Partial<Parameters<typeof sealSessionToken>[0]> = {}, secret = SECRET) =>
    sealSessionToken({ ...parent, stepIndex: 0, ...differing }, secret);
  const propose = (bearer: string, { id = parent.runId, key = 'k', body = PROPOSED } = {}) =>
    send(sessionRoutes.proposeSessionAction, {
      params: { id },
      body,
      headers: { authorization: `Bearer ${bearer}`, ...(key && { 'idempotency-key': key }) },
    });
  const PROPOSED: unknown = { tool: 'github.labels.add', input: { labels: ['triage'] } };

  it('proposes actions of its run and reads them; people see them with the run', async () => {
    const { status, body } = await propose(token());
    expect(status).toBe(201);
    await work(body.actionId);
    const headers = { authorization: `Bearer ${token()}` };
    const params = { id: parent.runId, actionId: body.actionId };
    expect(await send(sessionRoutes.getSessionAction, { params, headers })).toMatchObject({
      status: 200,
      body: { status: 'succeeded', session: { runId: parent.runId, step: 'session' } },
    });
    for (const key of ['2', '3']) await propose(token(), { key });
    const first = await send(actionRoutes.listRunActions, { params: { id: parent.runId }, query: { limit: '2' } });
    expect(first.body.actions).toHaveLength(2);
    const query = { limit: '2', cursor: first.body.nextCursor };
    const second = await send(actionRoutes.listRunActions, { params: { id: parent.runId }, query });
    expect(second.body).toMatchObject({ actions: [{ tool: 'github.labels.add' }], nextCursor: null });
  });

  it.each([
    ['none', () => 'nothing'],
    ['one that another secret signed', () => token({}, 'another secret')],
    ['one for another run', () => token({ runId: 'run_other' })],
    ['one for another tenant', () => token({ tenant: 'globex' })],
    ['one that has expired', () => token({ expiresAt: isoNow(shop.clock) })],
    ['one whose claims were changed', () => changed(token())],
  ])('is required: %s is refused, and nothing starts', async (_name, bearer) => {
    const { status, body } = await propose(bearer());
    expect([401, 404]).toContain(status);
    expect(['UNAUTHORIZED', 'NOT_FOUND']).toContain(body.code);
    expect((await shop.now(parent)).steps[0]?.session?.actions).toEqual([]);
  });

  it('reads no action of another session, and no other run', async () => {
    const { body } = await direct(LABEL);
    const headers = { authorization: `Bearer ${token()}` };
    for (const actionId of [body.actionId, parent.runId, 'run_none']) {
      const params = { id: parent.runId, actionId };
      expect((await send(sessionRoutes.getSessionAction, { params, headers })).status).toBe(404);
    }
  });

  it('of a completed session is refused: without a read where it completed, and with one elsewhere', async () => {
    const bearer = { params: { id: parent.runId }, headers: { authorization: `Bearer ${token()}` } };
    const body = { completion_id: 'completion-1', outcome: 'succeeded', summary: 'done' };
    expect(await send(sessionRoutes.completeSession, { ...bearer, body })).toMatchObject({ status: 200 });
    const calls: string[] = [];
    shop.disturb(async (name, run) => {
      calls.push(name);
      return run();
    });
    const notify = () =>
      send(sessionRoutes.heartbeatSession, {
        ...bearer,
        body: { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } },
      });
    expect(await notify()).toMatchObject({ status: 409, body: { code: 'SESSION_CLOSED' } });
    expect(calls).toEqual([]);
    closedSessions = new ClosedSessions();
    expect(await notify()).toMatchObject({ status: 409, body: { code: 'SESSION_CLOSED' } });
    expect(calls).toEqual(['runAndStep']);
  });

  it('needs an idempotency key, so that a repeated request starts nothing', async () => {
    expect((await propose(token(), { key: '' })).status).toBe(400);
  });
});

function changed(token: string): string {
  const [claims = '', signature = ''] = token.slice('cst_'.length).split('.');
  const text = Buffer.from(claims, 'base64url').toString().replace('"s":0', '"s":1');
  return `cst_${Buffer.from(text).toString('base64url')}.${signature}`;
}

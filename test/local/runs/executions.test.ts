import { afterAll, beforeAll, expect, it } from 'vitest';
import { onTerminal } from '../../cli/command-line.ts';
import { ask, enrolledAgent, publishCommand, type StoryAgent } from '../harness/agent-story.ts';
import { eventually } from '../harness/eventually.ts';
import { ACME_KEY, type Answer, APPROVER_KEY, GLOBEX_KEY } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const COMMAND = (id: string) =>
  `{id: ${id}, tool: agent.command, with: {command: /usr/bin/uptime, args: [${id}], environment: dev, rollback: {command: /usr/bin/uptime, args: [undo-${id}]}}}`;

interface Execution {
  state: string;
  current_step: number | null;
  steps: { state: string; action_hash: string | null; exit_code: number | null; worker_id: string | null }[];
  approvals: { state: string; action_hash: string; action: { fields: object } }[];
  output: { chunks: { data: string }[]; complete: boolean } | null;
  validation_mode: string | null;
  rollback_session_id: string | null;
}
interface Refused {
  code: string;
  detail: string;
  current?: { action_hash: string; action: { fields: { args: string[] } } };
}

let host: TestHost;
let agent: StoryAgent;
beforeAll(async () => {
  host = await startTestHost();
  await publishCommand(host);
  const body = `name: two\nsteps:\n  - ${COMMAND('one')}\n  - ${COMMAND('two')}\n`;
  await ask(host, 'POST', '/workflows', { body, headers: { 'content-type': 'application/yaml' } });
  agent = await enrolledAgent(host, 'one');
});
afterAll(() => host.stop());

const send = <Body>(method: string, path: string, body?: object, key = ACME_KEY): Promise<Answer<Body>> =>
  host.request(method, `/api/v1/executions${path}`, {
    headers: { 'x-api-key': key },
    ...(body && { body: JSON.stringify(body) }),
  });
const start = (body: object) => send<{ session_id: string; runbook_id: string } & Refused>('POST', '', body);
const shown = async (id: string) => (await send<Execution>('GET', `/${id}`)).body;
const waitFor = (id: string, isSo: (execution: Execution) => boolean) =>
  eventually('the execution', async () => {
    const execution = await shown(id);
    return isSo(execution) ? execution : undefined;
  });

it('an execution runs commands with the mode and profile that were requested, each approved as exactly the write that was shown', async () => {
  const wanted = { ticket_id: 'INC0001', runbook_id: 'two', validation_mode: 'per_step' };
  const begun = await start({ ...wanted, environment_profile: 'dev-flex' });
  expect(begun.status).toBe(201);
  const id = begun.body.session_id;
  const waiting = await waitFor(id, ({ state }) => state === 'waiting_for_approval');
  expect(waiting).toMatchObject({ current_step: 1, validation_mode: 'per_step', approvals: [{ step_number: 1 }] });
  const hash = waiting.steps[0]?.action_hash ?? '';
  const approve = (body: object, key = APPROVER_KEY) => send<Refused>('POST', `/${id}/approve`, body, key);
  const yes = { step_number: 1, approved: true };

  for (const body of [yes, { ...yes, action_hash: '0'.repeat(64) }]) {
    const { status, body: refused } = await approve(body);
    expect({ status, code: refused.code }).toEqual({ status: 409, code: 'APPROVAL_STALE' });
    expect(refused.current).toMatchObject({ action_hash: hash, action: { fields: { args: ['one'] } } });
  }
  const bad = [
    // Who has started it.
    { body: { ...yes, action_hash: hash }, key: ACME_KEY, status: 403, code: 'APPROVAL_SELF' },
    { body: { ...yes, action_hash: hash }, key: GLOBEX_KEY, status: 404 },
    { body: { ...yes, action_hash: hash, approver_role: 'owner' }, status: 403 },
    { body: { ...yes, approved: false, action_hash: hash }, status: 400 },
    { body: { ...yes, step_number: 2, action_hash: hash }, status: 409 },
  ];
  for (const { body, key, ...refusal } of bad) {
    const { status, body: refused } = await approve(body, key);
    expect({ status, code: refused.code }, JSON.stringify(body)).toMatchObject(refusal);
  }
  expect((await agent.sync()).assignments).toEqual([]);

  expect(await approve({ ...yes, action_hash: hash })).toMatchObject({ status: 200, body: { outcome: 'approved' } });
  expect(await approve({ ...yes, action_hash: hash })).toMatchObject({ status: 200, body: { outcome: 'already' } });
  const statement = await agent.take();
  expect(statement).toMatchObject({ action_hash: hash, step_number: 1, command: { args: ['one'] } });
  await agent.print(statement, 0, 'restarted\n');
  expect((await shown(id)).output).toMatchObject({ chunks: [{ data: 'restarted\n' }], complete: false });
  await agent.complete(statement, 1);

  const second = await waitFor(id, ({ steps }) => steps[1]?.state === 'awaiting_approval');
  expect(second.steps[0]).toMatchObject({ state: 'succeeded', exit_code: 0, worker_id: agent.agentId });
  const other = second.steps[1]?.action_hash ?? '';
  expect(other).not.toBe(hash);
  expect(await approve({ step_number: 2, approved: true, action_hash: hash })).toMatchObject({ status: 409 });
  await approve({ step_number: 2, approved: true, action_hash: other });
  await agent.complete(await agent.take(), 0);
  await waitFor(id, ({ state }) => state === 'completed');

  const { events, next, more } = (
    await send<{ events: { event: string }[]; next: number; more: boolean }>('GET', `/${id}/events`)
  ).body;
  const names = events.map(({ event }) => event);
  expect(names[0]).toBe('session.created');
  expect(names.at(-1)).toBe('session.completed');
  expect(names.filter((name) => name === 'approval.requested')).toHaveLength(2);
  expect(names.filter((name) => name === 'execution.step.completed')).toHaveLength(2);
  expect(more).toBe(false);
  expect((await send<{ events: unknown[] }>('GET', `/${id}/events?since=${next}`)).body.events).toEqual([]);
  expect((await send('GET', `/${id}`, undefined, GLOBEX_KEY)).status).toBe(404);
});

it('a rollback from a step on undoes that write and later ones, and no earlier one', async () => {
  const { session_id: id } = (await start({ ticket_id: 'INC0002', runbook_id: 'two' })).body;
  const active = await send<Refused>('POST', `/${id}/rollback`, { step_number: 2 });
  expect({ status: active.status, code: active.body.code }).toEqual({ status: 409, code: 'RUN_INVALID_TRANSITION' });
  for (const step of [1, 2]) {
    const statement = await agent.take();
    expect(statement.step_number).toBe(step);
    await agent.complete(statement, 0);
  }
  await host.waitForRun(id);
  await eventually('its evidence', async () => (await host.waitForRun(id)).evidence ?? undefined);
  expect((await send('POST', `/${id}/rollback`, { step_number: 3 })).status).toBe(400);
  const back = await send<Execution>('POST', `/${id}/rollback`, { step_number: 2, reason: 'worse than before' });
  const rollback = back.body.rollback_session_id ?? '';
  expect(back).toMatchObject({ status: 200, body: { state: 'completed' } });
  const undo = await agent.take();
  expect(undo).toMatchObject({ rollback: true, session_id: rollback, command: { args: ['undo-two'] } });
  await agent.complete(undo, 0);
  expect((await host.waitForRun(rollback)).status).toBe('succeeded');
  expect((await agent.sync()).assignments).toEqual([]);
});

it('the command line shows, decides, follows and rolls back executions', async () => {
  const cli = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await onTerminal(120, ['executions', ...args, '--url', host.url]);
    return { exitCode, stdout, stderr };
  };
  const json = async <Body>(...args: string[]) => JSON.parse((await cli(...args, '--json')).stdout) as Body;
  const options = ['--runbook', 'two', '--mode', 'per_step', '--environment-profile', 'dev-flex'];
  const { session_id: id } = await json<{ session_id: string }>('start', 'INC0004', ...options);
  await waitFor(id, ({ state }) => state === 'waiting_for_approval');
  const page = await cli('show', id.slice(0, 14));
  expect(page.stdout).toMatch(/waiting_for_approval[\s\S]*INC0004[\s\S]*1 +one +agent\.command +awaiting_approval/);
  expect(page.stderr).toContain('executions approve|reject');

  expect((await cli('approve', id, '--step', '2', '--yes', '--key', APPROVER_KEY)).stderr).toContain('step 2 of');
  expect((await cli('reject', id, '--yes', '--key', APPROVER_KEY)).stderr).toContain('--notes is required');
  for (const output of ['one', 'two']) {
    await waitFor(id, ({ approvals }) => approvals.some(({ state }) => state === 'pending' || state === 'notified'));
    const approved = await cli('approve', id, '--yes', '--key', APPROVER_KEY);
    expect([approved.exitCode, approved.stdout]).toEqual([0, expect.stringMatching(/step \d: approved/)]);
    const statement = await agent.take();
    await agent.print(statement, 0, `${output}\n`);
    await agent.complete(statement, 1);
  }
  await waitFor(id, ({ state }) => state === 'completed');

  const { executions, nextCursor } = await json<{ executions: object[]; nextCursor: string }>('list', '--limit', '1');
  expect(executions).toMatchObject([{ session_id: id, state: 'completed', ticket_id: 'INC0004', runbook_id: 'two@1' }]);
  const others = await json<{ executions: { session_id: string }[] }>('list', '--all', '--cursor', nextCursor);
  expect(others.executions.length).toBeGreaterThanOrEqual(3);
  expect(others.executions.map(({ session_id }) => session_id)).not.toContain(id);
  const part = await json<{ events: unknown[]; more: boolean; next: number }>('events', id, '--limit', '1');
  expect(part.more).toBe(true);
  const all = (await cli('events', id, '--all')).stdout.trim().split('\n');
  expect(all[0]).toContain('session.created');
  expect(all.at(-1)).toContain('session.completed');

  await eventually('its evidence', async () => (await host.waitForRun(id)).evidence ?? undefined);
  const back = await cli('rollback', id, '--step', '2', '--reason', 'worse than before');
  expect(back.stdout).toMatch(new RegExp(`^run_[0-9a-f]+ undoes the writes of ${id}`));
  await agent.complete(await agent.take(), 0);
});

it('what cannot be run as requested is refused, with what to do', async () => {
  const cases = [
    { body: { ticket_id: 'INC0003' }, status: 400, says: 'name the workflow' },
    { body: { ticket_id: 'INC0003', runbook_id: 'twoo' }, status: 404, says: 'there is no workflow twoo' },
    {
      body: { ticket_id: 'INC0003', runbook_id: 'two', environment_profile: 'prod-critical' },
      status: 400,
      says: 'dev-flex',
    },
    { body: { ticket_id: 'INC0003', runbook_id: 'two', validation_mode: 'all' }, status: 400, says: 'validation_mode' },
    { body: { ticket_id: 'INC0003', runbook_id: 'two', unknown: 1 }, status: 400, says: 'unknown' },
  ];
  for (const { body, status, says } of cases) {
    const refused = await start(body);
    expect({ status: refused.status, detail: refused.body.detail }).toEqual({
      status,
      detail: expect.stringContaining(says),
    });
  }
  expect((await start({ ticket_id: 'INC0002' })).body.runbook_id).toBe('two@1');
});

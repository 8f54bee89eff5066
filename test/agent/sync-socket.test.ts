import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { enrolled, fast, fastNow, type RunningAgent, runAgent } from './agent-under-test.ts';
import { FakeRuntime, RUN_ID } from './fake-runtime.ts';

/** The agent never reaches it in a test: what happens, happens without a poll. */
const NEVER_MS = 24 * 60 * 60_000;

const folder = temporaryFolder();
afterAll(() => folder.remove());

const assignmentId = (number: number) => `${RUN_ID}${number}.0.1`;
let runtime: FakeRuntime;
let dir: string;
let agent: RunningAgent;
let count = 0;

beforeEach(async () => {
  runtime = await new FakeRuntime(fastNow).start();
  runtime.behaviour.socketUrl = runtime.ownSocketUrl;
  runtime.behaviour.syncWithSocketMs = NEVER_MS;
  count += 1;
  dir = await enrolled(runtime, join(folder.path, `agent-${count}`));
});
afterEach(async () => {
  runtime.behaviour.failWith = undefined;
  agent.program.stopCommands('the test ends');
  await agent.stop();
  await runtime.stop();
});

const shell = (script: string) => ({ executable: '/bin/sh', args: ['-c', script] });
/** The agent has synced since its socket was opened, and waits. */
const connected = () => runtime.until(() => runtime.syncs.at(-1)?.socket === true);
const reported = (reports = 1) => runtime.until(() => runtime.reports.length >= reports);
const assignment = (number: number, script = 'true') =>
  runtime.statement({
    assignment_id: assignmentId(number),
    session_id: `${RUN_ID}${number}`,
    idempotency_key: `key-${number}`,
    command: shell(script),
  });

describe('an agent with a socket', () => {
  it('takes an assignment when the runtime says so, without waiting for its next sync', async () => {
    runtime.behaviour.syncMs = NEVER_MS;
    agent = await runAgent(dir);
    await connected();
    const before = runtime.syncs.length;
    runtime.offer(assignment(1));
    runtime.say('{"type":"sync"}');
    await reported();
    expect(runtime.syncs.slice(before).every(({ socket }) => socket)).toBe(true);
    expect(runtime.acks).toMatchObject([{ assignment_id: assignmentId(1), accepted: true }]);
    expect(runtime.reports).toMatchObject([{ status: 'succeeded' }]);
  });

  it('syncs every 10 s while a command runs, so that its lease is renewed', async () => {
    runtime.behaviour.syncMs = NEVER_MS;
    runtime.behaviour.leaseMs = 30_000;
    agent = await runAgent(dir);
    await connected();
    runtime.offer(assignment(1, 'echo ready; exec sleep 300'));
    runtime.say('{"type":"sync"}');
    const renewals = () => runtime.syncs.filter(({ running }) => running.length === 1);
    await runtime.until(() => renewals().length >= 4);
    expect(runtime.reports).toEqual([]);
  });

  it('polls at once when the socket is cut, takes assignments, and connects again', async () => {
    agent = await runAgent(dir);
    await connected();
    runtime.offer(assignment(1));
    runtime.cutSockets();
    await reported();
    const withoutSocket = runtime.syncs.findIndex(({ socket }, index) => index > 0 && !socket);
    expect(withoutSocket).toBeGreaterThan(-1);
    await runtime.until(() => runtime.sockets.size === 1);
    await connected();
    runtime.offer(assignment(2));
    runtime.say('{"type":"sync"}');
    await reported(2);
    expect(runtime.reports.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
  });

  it('does nothing because of a message but sync', async () => {
    agent = await runAgent(dir);
    await connected();
    const mark = join(folder.path, `forged-${count}`);
    const forged = assignment(1, `touch ${mark}`);
    const assignments = [{ assignment_id: forged.assignment_id, envelope: runtime.envelope(forged) }];
    const before = { syncs: runtime.syncs.length, routes: runtime.routes.length };
    for (const message of [
      'no JSON',
      'null',
      '[]',
      '{"type":["sync"]}',
      '{"type":"drain","drain":true}',
      '{"type":"error","code":"FORBIDDEN","message":"stop"}',
      JSON.stringify({ type: 'assignments', assignments, cancels: [], drain: true }),
    ])
      runtime.say(message);
    // Messages arrive in order, so the agent has read all others when it has read this one.
    runtime.say(JSON.stringify({ type: 'sync', assignments, drain: true, intervals: { sync_ms: 1 } }));
    await runtime.until(() => runtime.syncs.length > before.syncs);
    runtime.offer(assignment(2));
    runtime.say('{"type":"sync"}');
    await reported();
    expect(runtime.acks).toMatchObject([{ assignment_id: assignmentId(2), accepted: true }]);
    expect(existsSync(mark)).toBe(false);
    expect(runtime.routes.slice(before.routes).filter((route) => route.endsWith('drain'))).toEqual([]);
  });

  it('closes a socket that sends a message that is too large, and takes assignments', async () => {
    agent = await runAgent(dir);
    await connected();
    runtime.offer(assignment(1));
    runtime.say('x'.repeat(100_000));
    await reported();
    expect(agent.lines.join('\n')).toContain('the socket is closed: Max payload size exceeded');
  });

  it('joins many hints into few syncs', async () => {
    agent = await runAgent(dir);
    await connected();
    const before = runtime.syncs.length;
    for (let hint = 0; hint < 500; hint += 1) runtime.say('{"type":"sync"}');
    runtime.offer(assignment(1));
    runtime.say('{"type":"sync"}');
    await reported();
    expect(runtime.syncs.length - before).toBeLessThan(50);
  });

  it('pings before the connection is idle for 10 minutes, and opens another one before it is too old', async () => {
    // The pings are 5 minutes apart, and the connection ends after 80 to 104.
    const hurried = { ...fast, sleep: (ms: number, until?: AbortSignal) => fast.sleep(ms / 2_000, until) };
    agent = await runAgent(dir, hurried);
    await runtime.until(() => runtime.socketMessages.length >= 3);
    expect(runtime.socketMessages[0]).toEqual({ action: 'ping' });
    await runtime.until(() => runtime.socketRequests >= 2 && runtime.sockets.size === 1);
  });

  it('stays without the socket if it is refused, tries again, and works', async () => {
    runtime.behaviour.socketUrl = `${runtime.ownSocketUrl.replace(/:\d+/, ':1')}`;
    agent = await runAgent(dir);
    runtime.offer(assignment(1));
    await reported();
    expect(runtime.syncs.some(({ socket }) => socket)).toBe(false);
    expect(agent.lines.join('\n')).toContain('the socket is closed');
  });

  it.each(['ws://stage.example/live', 'http://127.0.0.1/live', 'no address'])(
    'does not open %s, and works without it',
    async (url) => {
      runtime.behaviour.socketUrl = url;
      agent = await runAgent(dir);
      runtime.offer(assignment(1));
      await reported();
      expect(agent.lines.join('\n')).toContain('not wss');
    },
  );
});

it('an agent that has drained closes its socket', async () => {
  agent = await runAgent(dir);
  await connected();
  expect(await agent.stop()).toBe('drained');
  await runtime.until(() => runtime.sockets.size === 0);
});

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, cpSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { enrolled } from './agent-under-test.ts';
import { ASSIGNMENT_ID, FakeRuntime, OTHER_ASSIGNMENT_ID, OTHER_RUN_ID } from './fake-runtime.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const folder = temporaryFolder();
afterAll(() => folder.remove());
// For the user of the commands, if this process is root.
chmodSync(folder.path, 0o777);

let runtime: FakeRuntime;
let dir: string;
let mark: string;
let count = 0;
const processes: ChildProcess[] = [];

beforeEach(async () => {
  runtime = await new FakeRuntime().start();
  runtime.behaviour.syncMs = 100;
  count += 1;
  dir = await enrolled(runtime, join(folder.path, `agent-${count}`));
  mark = join(folder.path, `mark-${count}`);
});
afterEach(async () => {
  for (const each of processes.splice(0)) if (each.exitCode === null) each.kill('SIGKILL');
  await runtime.stop();
});

interface Started {
  process: ChildProcess;
  /** Everything that it printed. */
  text(): string;
  exit: Promise<number | null>;
}

function start(inFolder = dir, inherited: number[] = []): Started {
  const child = spawn(process.execPath, [join(ROOT, 'bin/countersign.ts'), 'agent', 'run', '--dir', inFolder], {
    stdio: ['ignore', 'pipe', 'pipe', ...inherited],
  });
  processes.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => (text += bytes));
  return { process: child, text: () => text, exit: once(child, 'exit').then(([code]) => code as number | null) };
}

/** A command that leaves a mark for each time it runs, and lasts until the file `${mark}.end` exists. */
const command = () => ({
  executable: '/bin/sh',
  args: ['-c', `echo run >> ${mark}; echo ready; while [ ! -e ${mark}.end ]; do sleep 0.05; done`],
});
const runs = () => (existsSync(mark) ? readFileSync(mark, 'utf8').trim().split('\n').length : 0);

describe('an agent that is killed', () => {
  it.each([
    ['when it acknowledges', 'agt_1/ack', 'never_started', 0],
    ['while the command runs', 'agt_1/output', 'unknown', 1],
    ['when it reports the result', 'agt_1/complete-step', 'succeeded', 1],
  ])(
    '%s reports what it knows after its restart, and does not run the command again',
    async (_when, route, status, expected) => {
      if (route === 'agt_1/complete-step') writeFileSync(`${mark}.end`, '');
      const first = start();
      await runtime.until(() => runtime.syncs.length > 0);
      runtime.behaviour.cut = (requested) => requested === route && first.process.kill('SIGKILL');
      const statement = runtime.statement({ command: command() });
      runtime.offer(statement);
      await first.exit;
      runtime.behaviour.cut = undefined;
      runtime.offers = [];
      const second = start();
      await runtime.until(() => runtime.reports.length > 0);
      runtime.offer(statement);
      await runtime.until(() => runtime.acks.some(({ accepted }) => !accepted));
      expect(runtime.reports).toMatchObject([{ status, assignment_id: ASSIGNMENT_ID, idempotency_key: 'key-1' }]);
      expect(runs()).toBe(expected);
      second.process.kill('SIGTERM');
      expect(await second.exit).toBe(0);
    },
  );
});

it('closes what it inherits, so that commands cannot read it', async () => {
  const secret = join(folder.path, `inherited-${count}`);
  writeFileSync(secret, 'secret', { mode: 0o600 });
  // Node.js itself closes the first ones for commands, so there must be many.
  const descriptors = Array.from({ length: 60 }, () => openSync(secret, 'r'));
  start(dir, descriptors);
  for (const descriptor of descriptors) closeSync(descriptor);
  await runtime.until(() => runtime.syncs.length > 0);
  runtime.offer(runtime.statement({ command: { executable: '/bin/ls', args: ['/proc/self/fd'] } }));
  await runtime.until(() => runtime.reports.length > 0);
  expect(runtime.outputOf(ASSIGNMENT_ID)).toBe('0\n1\n2\n3\n');
});

describe('two processes', () => {
  it('cannot use one folder', async () => {
    const first = start();
    await runtime.until(() => runtime.syncs.length > 0);
    const second = start();
    expect(await second.exit).toBe(1);
    expect(second.text()).toContain(`process ${first.process.pid} already runs the agent of this folder`);
  });

  it('with one identity: the older one stops its command and ends, and the newer one works', async () => {
    const first = start();
    await runtime.until(() => runtime.syncs.length > 0);
    runtime.offer(runtime.statement({ command: command() }));
    await runtime.until(() => runtime.outputOf(ASSIGNMENT_ID).includes('ready'));
    const copy = join(folder.path, `copy-${count}`);
    cpSync(dir, copy, { recursive: true, filter: (path) => !path.includes('agent.lock') && !path.includes('journal') });
    start(copy);
    expect(await first.exit).toBe(3);
    expect(first.text()).toContain('another process uses the identity of this agent');
    runtime.offer(runtime.statement({ session_id: OTHER_RUN_ID, assignment_id: OTHER_ASSIGNMENT_ID }));
    await runtime.until(() => runtime.reports.some(({ assignment_id }) => assignment_id === OTHER_ASSIGNMENT_ID));
    expect(runs()).toBe(1);
  });
});

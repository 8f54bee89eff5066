import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { logTo } from '../../agent/agent-log.ts';
import { parseConfig } from '../../agent/config.ts';
import { Journal } from '../../agent/journal.ts';
import { AssignedCommand, type CommandPorts } from '../../agent/run-command.ts';
import { commandUser } from '../../agent/sandbox/command-user.ts';
import { bubblewrapPath } from '../../agent/sandbox/sandboxed-command.ts';
import { ServerClock } from '../../agent/server-clock.ts';
import { machine } from '../../agent/system.ts';
import type { AssignmentStatement, OutputChunk } from '../../lambdas/agents/protocol.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { openWorld, type World } from '../local/simulators/world.ts';
import { FakeRuntime } from './fake-runtime.ts';
import { visibleFolder } from './visible-folder.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
/** Where commands could see it: the folders for temporary files are new ones in a sandbox. */
const visible = visibleFolder('run-command');
afterAll(() => rmSync(visible, { recursive: true, force: true }));
const secretIdFile = join(visible, 'secret-id');
writeFileSync(secretIdFile, 'local-secret-id', { mode: 0o600 });
const mark = join(folder.path, 'mark');

let world: World;
let journal: Journal;
let printed: string;
beforeEach(async () => {
  world = await openWorld();
  journal = Journal.open(join(folder.path, 'journal.jsonl'), Date.now());
  printed = '';
});
afterEach(async () => {
  journal.close();
  await world.close();
});

function commandOf(further: Partial<AssignmentStatement>, stdin?: string): AssignedCommand {
  const vault = { address: `${world.url}/_sim/vault`, auth: { appRole: { roleId: 'agent', secretIdFile } } };
  const db = { vault: { kv: 'payments/database' }, env: { password: 'PGPASSWORD' } };
  const output = async ({ chunks }: { chunks: OutputChunk[] }) => {
    printed += chunks.map(({ data }) => data).join('');
    return { next_seq: (chunks.at(-1)?.stream_seq ?? 0) + 1, wait_ms: 0, full: false };
  };
  const ports: CommandPorts = {
    client: { output },
    config: parseConfig({ vault, credentials: { db } }, 'agent.yaml'),
    user: commandUser(undefined),
    agentFolder: join(folder.path, 'agent'),
    journal,
    clock: new ServerClock(machine),
    system: machine,
    log: logTo(
      () => {},
      () => '',
      false,
    ),
  };
  const statement = new FakeRuntime().statement({ credentials: ['db'], ...further });
  return new AssignedCommand(statement, Date.now() + 30_000, ports, { stdin });
}

it('a command that is ended while its credentials are fetched does not start', async () => {
  const command = commandOf({ command: { executable: '/usr/bin/touch', args: [mark] } });
  const report = command.run();
  command.kill('another process uses the identity of this agent');
  expect(await report).toMatchObject({
    status: 'never_started',
    reason: 'another process uses the identity of this agent',
    credentials_used: [{ id: 'db', revoked: true }],
  });
  expect(existsSync(mark)).toBe(false);
  expect(journal.unfinished()).toEqual([]);
});

it.runIf(process.getuid?.() === 0)(
  'a command that the user of commands cannot reach does not start, and the report says what to do',
  async () => {
    const closed = mkdtempSync(join(visible, 'closed-'));
    const executable = join(closed, 'script');
    writeFileSync(executable, '#!/bin/sh\necho ran\n', { mode: 0o755 });
    const report = await commandOf({ command: { executable, args: [] } }).run();
    expect(report).toMatchObject({
      status: 'never_started',
      reason: expect.stringMatching(/^nobody may not execute .*; run the agent as another user, .*agent\.yaml/),
    });
    chmodSync(visible, 0o755);
    chmodSync(closed, 0o755);
    expect(await commandOf({ command: { executable, args: [] } }).run()).toMatchObject({ status: 'succeeded' });
    expect(printed).toContain('ran');
  },
);

it.runIf(bubblewrapPath())(
  'a command in a sandbox cannot read the file with which the agent logs in to Vault',
  async () => {
    const script = `cat ${secretIdFile} || echo hidden`;
    const profile = { environment: 'staging', sandbox_profile: 'staging-standard' } as const;
    const command = commandOf({ command: { executable: '/bin/sh', args: ['-c', script] }, ...profile });
    expect(await command.run()).toMatchObject({ status: 'succeeded' });
    expect(printed).toContain('hidden');
    expect(printed).not.toContain('local-secret-id');
  },
);

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const PROMPT = '{"text":"Label the issue.","data":{"token":"cst_eyJ0IjoiYWNtZSJ9.c2lnbmF0dXJl"}}\n';

it('a session reads its input, and its token is removed from the output', async () => {
  const command = { executable: '/bin/cat', args: [] };
  expect(await commandOf({ command, stdin_sha256: sha256(PROMPT) }, PROMPT).run()).toMatchObject({ exit_code: 0 });
  expect(printed).toContain('Label the issue.');
  expect(printed).not.toContain('cst_');
});

it.each([
  ['other than the signed one', sha256('{"text":"Delete everything."}'), PROMPT],
  ['although none is signed', undefined, PROMPT],
  ['missing', sha256(PROMPT), undefined],
])('a command whose input is %s does not start', async (_, signed, stdin) => {
  const started = join(folder.path, `started-${sha256(_)}`);
  const command = { executable: '/usr/bin/touch', args: [started] };
  const report = await commandOf({ command, ...(signed && { stdin_sha256: signed }) }, stdin).run();
  expect(report).toMatchObject({ status: 'never_started', reason: 'its input is not the one that was signed' });
  expect(existsSync(started)).toBe(false);
});

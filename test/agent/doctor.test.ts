import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { examineAgent } from '../../agent/doctor.ts';
import { machine } from '../../agent/system.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { enrolled } from './agent-under-test.ts';
import { FakeRuntime } from './fake-runtime.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

let runtime: FakeRuntime;
let dir: string;
beforeEach(async () => {
  runtime = await new FakeRuntime().start();
  dir = await enrolled(runtime, join(folder.path, String(Math.random())));
});
afterEach(() => runtime.stop());

const findings = async () => {
  const found = await examineAgent(dir, machine);
  return new Map(found.map(({ subject, level, finding }) => [subject, `${level}: ${finding}`]));
};

it('examines the folder, the key, the user and the profiles of a host, and says how to fix what is wrong', async () => {
  const good = await findings();
  expect(good.get('folder')).toBe('ok: only this user can change it');
  expect(good.get('process')).toMatch(/^warning: none runs this agent; run: countersign agent run/);
  expect(good.get('profile dev-flex')).toBe('ok: available on this host');
  const isRoot = process.getuid?.() === 0;
  expect(good.get('user')).toMatch(isRoot ? /^warning: the agent runs as root/ : /^ok: not root/);
  chmodSync(dir, 0o770);
  chmodSync(join(dir, 'agent.key'), 0o640);
  const bad = await findings();
  expect(bad.get('folder')).toMatch(/^error: other users can change .*; run: chmod go-w/);
  expect(bad.get('key')).toMatch(/^error: other users can read .*; run: chmod 600/);
});

it('says that the runtime does not respond, and that the folder has no agent', async () => {
  await runtime.stop();
  expect((await findings()).get('runtime')).toMatch(/^error: .* does not respond/);
  dir = join(folder.path, 'empty');
  expect((await findings()).get('identity')).toMatch(/^error: there is no agent in .*countersign agent enrol/);
});

it('says that the runtime no longer accepts the agent, and asks it without a registration', async () => {
  expect((await findings()).get('identity')).toBe('ok: demo (agt_1) of acme');
  expect(runtime.refused).toEqual(['AGENT_IDENTITY_IN_USE']);
  expect([runtime.registrations, runtime.syncs]).toEqual([[], []]);
  // The runtime has only the key of the last agent.
  await enrolled(runtime, join(folder.path, 'another'));
  expect((await findings()).get('identity')).toMatch(
    /^error: demo .* may have been removed; enrol it again with .*--dir/,
  );
});

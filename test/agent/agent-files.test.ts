import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { AgentError } from '../../agent/agent-error.ts';
import { AgentFolder, writePrivate } from '../../agent/agent-folder.ts';
import { parseConfig, readConfig } from '../../agent/config.ts';
import { enrolAgent } from '../../agent/enrol.ts';
import { lockFolder, lockHolder } from '../../agent/folder-lock.ts';
import { Journal } from '../../agent/journal.ts';
import { ResultSpool } from '../../agent/result-spool.ts';
import { machine } from '../../agent/system.ts';
import { fingerprintOf } from '../../agent/verify-assignment.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { ASSIGNMENT_ID, FakeRuntime } from './fake-runtime.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const runtime = new FakeRuntime();
const DAY_MS = 24 * 60 * 60_000;

describe('the journal', () => {
  const file = join(folder.path, 'journal.jsonl');
  const at = '2026-11-16T10:00:00.000Z';

  it('knows after a crash what was acknowledged and started, although the last line is cut', () => {
    const journal = Journal.open(file, Date.parse(at));
    journal.acknowledged(runtime.statement(), at);
    journal.started(ASSIGNMENT_ID, at);
    journal.acknowledged(runtime.statement({ assignment_id: 'run_2.0.3', session_id: 'run_2', lease_version: 3 }), at);
    journal.close();
    appendFileSync(file, '{"event":"started","at":"20');
    const again = Journal.open(file, Date.parse(at));
    expect(again.unfinished()).toMatchObject([
      { assignment_id: ASSIGNMENT_ID, startedAt: at },
      { assignment_id: 'run_2.0.3' },
    ]);
    expect(again.get('run_2.0.3')?.startedAt).toBeUndefined();
    again.close();
  });

  it('has seen earlier leases of a step, and not later ones', () => {
    const journal = Journal.open(file, Date.parse(at));
    const step = { session_id: 'run_2' };
    const seen = [1, 3, 4].map((lease_version) =>
      journal.hasSeen(runtime.statement({ ...step, assignment_id: `run_2.0.${lease_version}`, lease_version })),
    );
    expect(seen).toEqual([true, true, false]);
    journal.close();
  });

  it('forgets what ended a week ago, and nothing that is open', () => {
    const journal = Journal.open(file, Date.parse(at));
    journal.ended(ASSIGNMENT_ID, at);
    journal.close();
    const later = Journal.open(file, Date.parse(at) + 8 * DAY_MS);
    expect([later.get(ASSIGNMENT_ID), later.unfinished().length]).toEqual([undefined, 1]);
    later.close();
  });

  const endedEntries = (index: number) => {
    const assignment_id = `run_${index}.0.1`;
    const facts = { session_id: `run_${index}`, step_id: 'a', lease_version: 1, idempotency_key: 'k', issued_at: at };
    const acknowledged = { event: 'acknowledged', at, assignment_id, ...facts, sandbox_profile: 'dev-flex' };
    return [acknowledged, { event: 'ended', at, assignment_id }].map((entry) => `${JSON.stringify(entry)}\n`).join('');
  };

  it('of an agent that runs for months stays short, and knows everything of the last week', () => {
    const long = join(folder.path, 'long.jsonl');
    writeFileSync(long, Array.from({ length: 2_000 }, (_, index) => endedEntries(index)).join(''));
    const journal = Journal.open(long, Date.parse(at));
    expect(journal.newestIssue).toBe(Date.parse(at));
    const later = new Date(Date.parse(at) + 9 * DAY_MS).toISOString();
    const statement = runtime.statement({ session_id: 'run_new', assignment_id: 'run_new.0.1' });
    journal.acknowledged(statement, later);
    journal.started('run_new.0.1', later);
    expect([journal.get('run_0.0.1'), journal.get('run_new.0.1')?.startedAt]).toEqual([undefined, later]);
    journal.close();
    expect(readFileSync(long, 'utf8').trim().split('\n')).toHaveLength(2);
    const again = Journal.open(long, Date.parse(later));
    expect(again.unfinished()).toMatchObject([{ assignment_id: 'run_new.0.1', startedAt: later }]);
    again.close();
  });

  it('on a full disk has whole entries only, and goes on when there is space again', () => {
    const full = join(folder.path, 'full.jsonl');
    const module = pathToFileURL(join(import.meta.dirname, '../../agent/journal.ts')).href;
    const script = `
      const { Journal } = await import(${JSON.stringify(module)});
      const journal = Journal.open(${JSON.stringify(full)}, 0);
      const statement = ${JSON.stringify(runtime.statement({ idempotency_key: 'k'.repeat(150) }))};
      let written = 0;
      try {
        for (; written < 10; written += 1) journal.acknowledged({ ...statement, assignment_id: 'run_' + written }, ${JSON.stringify(at)});
      } catch (error) {
        console.log(JSON.stringify({ written, message: error.message }));
      }`;
    // A limit of 512 bytes (some shells: 1024) for each file: a write beyond it is cut, like one to a disk that is almost full.
    const limited = `trap '' XFSZ; ulimit -f 1; exec "$@"`;
    const node = [process.execPath, '--input-type=module', '-e', script];
    const { stdout } = spawnSync('/bin/sh', ['-c', limited, 'sh', ...node], { encoding: 'utf8' });
    const { written, message } = JSON.parse(stdout) as { written: number; message: string };
    expect(message).toContain('free space on its disk');
    const journal = Journal.open(full, Date.parse(at));
    journal.acknowledged(runtime.statement({ assignment_id: 'run_later' }), at);
    journal.close();
    const again = Journal.open(full, Date.parse(at));
    const names = Array.from({ length: written }, (_, index) => `run_${index}`);
    expect(again.unfinished().map(({ assignment_id }) => assignment_id)).toEqual([...names, 'run_later']);
    again.close();
  });

  it('stops the agent if a line within it is damaged', () => {
    const damaged = join(folder.path, 'damaged.jsonl');
    writeFileSync(damaged, 'garbage\n{"event":"ended","at":"x","assignment_id":"y"}\n');
    expect(() => Journal.open(damaged, 0)).toThrow(/line 1 is damaged/);
  });
});

it('the spool returns what was put there, and sets aside what it cannot read', () => {
  const spool = new ResultSpool(folder.path);
  writeFileSync(join(folder.path, 'broken.json'), '{');
  const report = {
    ...{ assignment_id: 'run/1.0.1', lease_version: 1, idempotency_key: 'k', status: 'succeeded' as const },
    ...{ exit_code: 0, signal: null, execution_ms: 1, sandbox_profile: 'dev-flex' as const },
    ...{ output: { sha256: '', bytes: 0, chunks: 0, dropped_bytes: 0 }, credentials_used: [], violations: [] },
  };
  spool.put(report);
  expect(new ResultSpool(folder.path).all()).toEqual([report]);
  spool.remove('run/1.0.1');
  expect(spool.all()).toEqual([]);
  expect(readdirSync(folder.path)).toContain('broken.json.refused');
});

describe('the lock of a folder', () => {
  it('is given to one process, and again after it was released', () => {
    const file = join(folder.path, 'agent.lock');
    const release = lockFolder(file);
    expect(() => lockFolder(file)).toThrow(`process ${process.pid} already runs the agent of this folder`);
    release();
    lockFolder(file)();
    expect(lockHolder(file)).toBeUndefined();
  });

  it('is taken from a process that has ended without releasing it', async () => {
    const file = join(folder.path, 'stale.lock');
    const child = spawn('/bin/true');
    writeFileSync(file, JSON.stringify({ pid: child.pid, startedAt: 'long ago' }));
    await once(child, 'exit');
    lockFolder(file)();
  });
});

describe('the configuration', () => {
  it.each([
    [
      {
        credentials: {
          db: {
            secretsManager: { arn: 'arn:aws:secretsmanager:eu-central-1:123456789012:secret:a' },
            env: { a: 'LD_PRELOAD' },
          },
        },
      },
      'agent.yaml: credentials.db.env.a: changes how programs start; use another name',
    ],
    [{ slot: 2 }, 'agent.yaml: unknown field "slot"; did you mean "slots"?'],
    [{ slots: 99 }, /slots: .*16/],
    [{ profiles: { 'prod-critical': { writable: ['/var'] } } }, 'prod-critical writes nothing to the host; remove it'],
    [{ profiles: { 'dev-flex': { allow: [{ executable: 'ls' }] } } }, 'absolute path'],
    [{ credentials: { db: { vault: { kv: 'a' }, env: { p: 'P' } } } }, 'needs the section vault'],
    [{ credentials: { db: { env: { p: 'P' } } } }, 'needs either vault or secretsManager'],
    [
      { vault: { address: 'http://vault.example', auth: { appRole: { roleId: 'x', secretIdFile: '/x' } } } },
      'use https',
    ],
  ])('%j is refused with its place and what to do', (content, message) => {
    expect(() => parseConfig(content, 'agent.yaml')).toThrow(message);
  });

  it('that other users can change is refused', async () => {
    const file = join(folder.path, 'agent.yaml');
    writeFileSync(file, 'slots: 1\n');
    chmodSync(file, 0o666);
    await expect(readConfig(file)).rejects.toThrow('chmod go-w');
    chmodSync(file, 0o644);
    expect(await readConfig(file)).toMatchObject({ slots: 1, credentials: {} });
  });
});

describe('enrolment', () => {
  const enrol = async (dir: string, fingerprints: string[] = []) => {
    const stage = await new FakeRuntime().start();
    try {
      const [key] = stage.signingKeys;
      const own = key ? [fingerprintOf(key) ?? ''] : [];
      const given = fingerprints.length > 0 ? fingerprints : own;
      return await enrolAgent(
        { url: stage.url, token: 'x'.repeat(30), dir, fingerprints: given, version: '0' },
        machine,
      );
    } finally {
      await stage.stop();
    }
  };

  it('writes a key that only this user can read, the identity with pinned keys, and a configuration that is valid', async () => {
    const dir = join(folder.path, 'enrolled');
    const { identity, fingerprints } = await enrol(dir);
    const agent = new AgentFolder(dir);
    expect(statSync(agent.keyFile).mode & 0o777).toBe(0o600);
    expect(agent.readIdentity()).toEqual(identity);
    expect(fingerprints).toHaveLength(1);
    expect(await readConfig(agent.config)).toMatchObject({ environments: ['dev'] });
    await expect(enrol(dir)).rejects.toThrow(/already has the agent demo/);
    chmodSync(agent.keyFile, 0o644);
    expect(() => agent.readKey()).toThrow('chmod 600');
  });

  it('pins nothing if a key has another fingerprint than expected', async () => {
    const dir = join(folder.path, 'refused');
    await expect(enrol(dir, ['00'.repeat(32)])).rejects.toThrow(/Nothing was pinned/);
    expect(() => new AgentFolder(dir).readIdentity()).toThrow(AgentError);
  });

  it('sends no token over an unencrypted connection', async () => {
    const enrolment = { token: 'x', dir: folder.path, fingerprints: [], version: '0' };
    await expect(enrolAgent({ ...enrolment, url: 'http://stage.example' }, machine)).rejects.toThrow('use https');
  });
});

describe('the folder', () => {
  const made = (name: string) => {
    const agent = new AgentFolder(join(folder.path, name));
    agent.create();
    for (const file of [agent.identityFile, agent.journal]) writePrivate(file, '');
    return agent;
  };

  it('is private: the agent does not start or enrol where other users can change what it trusts', async () => {
    const agent = made('shared');
    expect(() => agent.assertPrivate()).not.toThrow();
    for (const path of [agent.path, agent.identityFile, agent.journal, agent.spool]) {
      const before = statSync(path).mode;
      chmodSync(path, before | 0o020);
      expect(() => agent.assertPrivate()).toThrow(`other users can change ${path}`);
      chmodSync(path, before);
    }
    const open = join(folder.path, 'open');
    mkdirSync(open);
    chmodSync(open, 0o777);
    const enrolment = { url: 'http://localhost:1', token: 'x'.repeat(30), dir: open, fingerprints: [], version: '0' };
    await expect(enrolAgent(enrolment, machine)).rejects.toThrow('chmod go-w');
    expect(readdirSync(open)).not.toContain('agent.key');
  });

  it.runIf(process.getuid?.() === 0)('of another user is refused', () => {
    const agent = made('foreign');
    chownSync(agent.identityFile, 65_534, 65_534);
    expect(() => agent.assertPrivate()).toThrow(/belongs to user 65534/);
  });

  it('is written without following links', () => {
    const agent = made('links');
    const target = join(folder.path, 'target');
    writeFileSync(target, 'unchanged');
    symlinkSync(target, `${agent.identityFile}.new`);
    symlinkSync(target, join(agent.path, 'config'));
    writePrivate(agent.identityFile, 'identity');
    writePrivate(join(agent.path, 'config'), 'config');
    expect(readFileSync(target, 'utf8')).toBe('unchanged');
    expect(readFileSync(agent.identityFile, 'utf8')).toBe('identity');
    expect(statSync(agent.identityFile).mode & 0o777).toBe(0o600);
  });
});

it('a folder without an agent says how to create one', () => {
  mkdirSync(join(folder.path, 'empty'));
  expect(() => new AgentFolder(join(folder.path, 'empty')).readIdentity()).toThrow('countersign agent enrol URL');
});

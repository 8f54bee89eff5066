import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Journal } from '../../agent/journal.ts';
import { buildProgram } from '../../bin/build/build-cli.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { accelerated, enrolled, type RunningAgent, runAgent } from './agent-under-test.ts';
import { ASSIGNMENT_ID, FakeRuntime } from './fake-runtime.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
// For the user of the commands, if this process is root.
chmodSync(folder.path, 0o777);

/** A command that leaves a mark for each time it runs. */
const marking = (mark: string) => ({ executable: '/bin/sh', args: ['-c', `echo run >> ${mark}; echo one; echo two`] });
/** With an accelerated clock, the usual two minutes are too short for a busy machine. */
const inAnHour = (runtime: FakeRuntime) => new Date(runtime.now() + 3_600_000).toISOString();
const runsOf = (mark: string) => (existsSync(mark) ? readFileSync(mark, 'utf8').trim().split('\n').length : 0);

describe('an agent that is killed', () => {
  const program = join(folder.path, 'dist', 'countersign-agent.mjs');
  const preload = join(folder.path, 'kill-at.mjs');
  beforeAll(async () => {
    await buildProgram('countersign-agent', join(folder.path, 'dist'));
    writeFileSync(preload, KILL_AT);
  }, 120_000);

  const processes: ChildProcess[] = [];
  afterEach(() => {
    for (const each of processes.splice(0)) if (each.exitCode === null) each.kill('SIGKILL');
  });

  function start(dir: string, point: string): { process: ChildProcess; exit: Promise<number | null> } {
    const options = ['--import', preload, program, 'run', '--dir', dir];
    const child = spawn(process.execPath, options, { stdio: 'ignore', env: { ...process.env, KILL_AT: point } });
    processes.push(child);
    return { process: child, exit: once(child, 'exit').then(([code]) => code as number | null) };
  }

  /** Kills an agent at a point of a step, starts it again, and returns what the runtime and the host know then. */
  async function killedAt(point: string) {
    const name = `point-${point.replace(':', '-')}`;
    const runtime = await new FakeRuntime().start();
    try {
      runtime.behaviour.syncMs = 100;
      const dir = await enrolled(runtime, join(folder.path, name));
      const mark = join(folder.path, `mark-${name}`);
      const session_id = `run_${process.pid}_${name}`;
      // Of its own: an agent that starts ends everything on the machine that has the id of its assignment.
      runtime.offer(runtime.statement({ command: marking(mark), session_id, assignment_id: `${session_id}.0.1` }));
      const first = start(dir, point);
      // The last entry is written after the result was accepted. Nobody kills an agent without a point.
      const hasEnded = () => runtime.reports.length > 0 && journalOf(dir).includes('"ended"');
      await Promise.race([first.exit, ...(point === '' ? [runtime.until(hasEnded)] : [])]);
      first.process.kill('SIGKILL');
      await first.exit;
      const changes = changesOf(dir);
      const again = start(dir, '');
      // A sync of the first agent may still arrive.
      await Promise.race([runtime.until(() => runtime.registrations.length === 2), again.exit]);
      const before = runtime.syncs.length;
      const isKnown = () => runtime.reports.length > 0 && runtime.offers.length === 0;
      await Promise.race([runtime.until(() => runtime.syncs.length > before && isKnown()), again.exit]);
      again.process.kill('SIGTERM');
      const exitCode = await again.exit;
      const journal = Journal.open(join(dir, 'journal.jsonl'), Date.now());
      const left = { unfinished: journal.unfinished().length, spooled: readdirSync(join(dir, 'spool')) };
      journal.close();
      const statuses = [...new Set(runtime.reports.map(({ status }) => status))];
      return { point, exitCode, left, statuses, runs: runsOf(mark), changes };
    } finally {
      await runtime.stop();
    }
  }

  const journalOf = (dir: string) => readFileSync(join(dir, 'journal.jsonl'), 'utf8');
  const changesOf = (dir: string) => readFileSync(join(dir, 'changes'), 'utf8').trim().split('\n');
  /** How often the command may have run, by what the runtime gets to know. */
  const RUNS: Readonly<Record<string, readonly number[]>> = { never_started: [0], succeeded: [1], unknown: [0, 1] };

  it('before each change of its files and its command, or within it, runs the command at most once and says what it knows', async () => {
    const { changes } = await killedAt('');
    // Three entries of the journal, the command, and the result, which is written, sent and removed.
    expect(changes.filter((name) => name === 'writeFileSync')).toHaveLength(4);
    expect(changes).toContain('spawn');
    const points = changes.flatMap((name, index) => [
      `before:${index + 1}`,
      ...(name === 'writeFileSync' ? [`within:${index + 1}`] : []),
    ]);
    const results: Awaited<ReturnType<typeof killedAt>>[] = [];
    const left = points.values();
    const lane = async () => {
      for (const point of left) results.push(await killedAt(point));
    };
    await Promise.all([lane(), lane(), lane()]);
    for (const { point, exitCode, left, statuses, runs } of results) {
      expect([point, exitCode, left, statuses.length]).toEqual([point, 0, { unfinished: 0, spooled: [] }, 1]);
      expect(RUNS[statuses[0] ?? ''], `${point}: ${statuses}`).toContain(runs);
    }
    const seen = new Set(results.flatMap(({ statuses }) => statuses));
    expect([...seen].sort()).toEqual(['never_started', 'succeeded', 'unknown']);
  }, 300_000);
});

/**
 * Kills the process at a change that it makes from the first entry of its journal on: `before:3` before the third one,
 * `within:3` when half of the third one, a write, is on disk. Without a point it lists the changes in a file.
 */
const KILL_AT = `
import childProcess from 'node:child_process';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const [kind, number] = (process.env.KILL_AT ?? '').split(':');
const { writeSync } = fs;
const list = fs.openSync(process.argv.at(-1) + '/changes', 'a');
let count = 0;
for (const [owner, name] of [
  ...['writeFileSync', 'fsyncSync', 'renameSync', 'rmSync'].map((each) => [fs, each]),
  [childProcess, 'spawn'],
]) {
  const original = owner[name];
  owner[name] = (...args) => {
    const isFirst = name === 'writeFileSync' && String(args[1]).startsWith('{"event":"acknowledged"');
    if (count > 0 || isFirst) {
      count += 1;
      writeSync(list, name + '\\n');
    }
    if (count > 0 && count === Number(number)) {
      if (kind === 'within') writeSync(args[0], args[1].slice(0, args[1].length / 2));
      process.kill(process.pid, 'SIGKILL');
    }
    return original(...args);
  };
}
syncBuiltinESMExports();
`;

describe('a network that is cut', () => {
  let runtime: FakeRuntime;
  let agent: RunningAgent;
  const { system, now } = accelerated(20);
  afterEach(async () => {
    agent?.program.stopCommands('the test ends');
    runtime.behaviour.cut = undefined;
    runtime.behaviour.cutResponse = undefined;
    await agent?.stop();
    await runtime.stop();
  });

  const ROUTES = ['register', 'heartbeat', 'agt_1/ack', 'agt_1/output', 'agt_1/complete-step', 'agt_1/drain'];
  const CASES = [...ROUTES, 'agt_1/unregister'].flatMap((route) => [
    ['before', route] as const,
    ['after', route] as const,
  ]);

  it.each(CASES)(
    '%s the first two requests of %s: the command runs once, and its output and result arrive',
    async (when, route) => {
      runtime = await new FakeRuntime(now).start();
      const name = `cut-${when}-${route.replace('/', '-')}`;
      const dir = await enrolled(runtime, join(folder.path, name));
      const mark = join(folder.path, `mark-${name}`);
      let cuts = 0;
      const cut = (requested: string) => {
        if (requested !== route || cuts === 2) return false;
        cuts += 1;
        return true;
      };
      Object.assign(runtime.behaviour, when === 'before' ? { cut } : { cutResponse: cut });
      agent = await runAgent(dir, system);
      runtime.offer(runtime.statement({ command: marking(mark), start_before: inAnHour(runtime) }));
      await runtime.until(() => runtime.reports.length > 0);
      expect(await agent.stop()).toBe('drained');
      // An agent that has nothing to do ends, although the runtime does not respond to its farewell.
      expect(cuts).toBe(/drain|unregister/.test(route) ? 1 : 2);
      expect(runsOf(mark)).toBe(1);
      expect(runtime.outputOf(ASSIGNMENT_ID)).toBe('one\ntwo\n');
      const [first, ...others] = runtime.reports;
      expect(first).toMatchObject({ status: 'succeeded', exit_code: 0, output: { bytes: 8 } });
      // The runtime drops a result that it has: it is the same one.
      for (const other of others) expect(other).toEqual(first);
    },
  );
});

describe('an API that returns 500 for 10 minutes', () => {
  const OUTAGE_MS = 10 * 60_000;

  it('gets few requests meanwhile, and then the result of a command that ended before, and the agent works on', async () => {
    const { system, now } = accelerated(200);
    const runtime = await new FakeRuntime(now).start();
    const dir = await enrolled(runtime, join(folder.path, 'outage'));
    runtime.behaviour.leaseMs = 2 * OUTAGE_MS;
    runtime.behaviour.cut = (route) => {
      // From the moment at which the command has ended.
      if (route === 'agt_1/complete-step') runtime.behaviour.failWith = 500;
      return false;
    };
    const agent = await runAgent(dir, system);
    runtime.offer(runtime.statement({ timeout_seconds: 3_600, start_before: inAnHour(runtime) }));
    await runtime.until(() => runtime.behaviour.failWith === 500);
    const before = runtime.routes.length;
    await system.sleep(OUTAGE_MS);
    const requests = runtime.routes.length - before;
    expect(runtime.reports).toEqual([]);
    runtime.behaviour.cut = undefined;
    runtime.behaviour.failWith = undefined;
    await runtime.until(() => runtime.reports.length > 0);
    expect(runtime.reports).toMatchObject([{ status: 'succeeded', exit_code: 0 }]);
    // The agent notices with its next sync, which may come after the result.
    await runtime.until(() => agent.lines.join('\n').includes('the runtime responds again'));
    expect(await agent.stop()).toBe('drained');
    await runtime.stop();
    // A sync each 1.5 to 3 s, so that the lease is renewed as soon as possible, and a try of the result each 15 to 30 s.
    expect(requests).toBeLessThan(500);
    expect(requests).toBeGreaterThan(10);
  });
});

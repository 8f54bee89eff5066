import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OUTPUT_MAX_BYTES } from '../../lambdas/agents/agent-terms.ts';
import { KEY_INTRODUCTION_PAYLOAD_TYPE } from '../../lambdas/agents/protocol.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';
import { enrolled, fastNow, type RunningAgent, runAgent, withSkew } from './agent-under-test.ts';
import { ASSIGNMENT_ID, FakeRuntime, OTHER_ASSIGNMENT_ID, OTHER_RUN_ID, RUN_ID } from './fake-runtime.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
// For the user of the commands, if this process is root.
chmodSync(folder.path, 0o777);

let runtime: FakeRuntime;
let dir: string;
const running: RunningAgent[] = [];
let count = 0;

beforeEach(async () => {
  runtime = await new FakeRuntime(fastNow).start();
  count += 1;
  dir = await enrolled(runtime, join(folder.path, `agent-${count}`));
});
afterEach(async () => {
  for (const agent of running.splice(0)) {
    agent.program.stopCommands('the test ends');
    await agent.stop();
  }
  await runtime.stop();
});

async function start(...args: Parameters<typeof runAgent> | []): Promise<RunningAgent> {
  const agent = await runAgent(args[0] ?? dir, args[1]);
  running.push(agent);
  return agent;
}

const shell = (script: string) => ({ executable: '/bin/sh', args: ['-c', script] });
const mark = () => join(folder.path, `mark-${count}`);
/** Waits until the log of the agent has this. */
async function lineOf(text: string): Promise<void> {
  while (!running[0]?.lines.join('\n').includes(text)) await new Promise((resolve) => setImmediate(resolve));
}
const reported = (reports = 1) => runtime.until(() => runtime.reports.length >= reports);

describe('an agent', () => {
  it('acknowledges an assignment, runs its command, and reports output and result', async () => {
    await start();
    runtime.offer(runtime.statement({ command: shell('echo out; echo err >&2; exit 3') }));
    await reported();
    expect(runtime.acks).toEqual([{ assignment_id: ASSIGNMENT_ID, lease_version: 1, accepted: true }]);
    const text = runtime.outputOf(ASSIGNMENT_ID);
    expect([text.length, runtime.outputOf(ASSIGNMENT_ID, 'stdout'), runtime.outputOf(ASSIGNMENT_ID, 'stderr')]).toEqual(
      [8, 'out\n', 'err\n'],
    );
    expect(runtime.reports).toMatchObject([
      { status: 'failed', exit_code: 3, idempotency_key: 'key-1', output: { bytes: 8, dropped_bytes: 0 } },
    ]);
    expect(runtime.registrations).toMatchObject([{ profiles: ['dev-flex'], slots: 2 }]);
  });

  it('runs nothing that the runtime does not confirm', async () => {
    runtime.behaviour.confirm = false;
    await start();
    runtime.offer(runtime.statement({ command: shell(`touch ${mark()}`) }));
    const at = () => runtime.acks.length;
    await runtime.until(() => at() === 1);
    const { length } = runtime.syncs;
    await runtime.until(() => runtime.syncs.length > length + 2);
    expect(readdirSync(folder.path)).not.toContain(`mark-${count}`);
    expect(runtime.reports).toEqual([]);
  });

  it('runs an assignment once, however often it is offered, and not after a restart', async () => {
    const first = await start();
    const statement = runtime.statement({ command: shell(`echo x >> ${mark()}`) });
    runtime.offer(statement);
    await reported();
    runtime.offer(statement);
    await runtime.until(() => runtime.acks.length === 2);
    await first.stop();
    await start();
    runtime.offer(statement);
    await runtime.until(() => runtime.acks.length === 3);
    expect(readFileSync(mark(), 'utf8')).toBe('x\n');
    expect(runtime.acks.slice(1)).toMatchObject([
      { accepted: false, refusal: 'expired' },
      { accepted: false, refusal: 'expired' },
    ]);
  });

  it('refuses more commands than it has slots', async () => {
    await start();
    for (const lease of [1, 2, 3]) {
      const id = `run_${lease}.0.1`;
      runtime.offer(runtime.statement({ assignment_id: id, session_id: `run_${lease}`, command: shell('sleep 30') }));
    }
    await runtime.until(() => runtime.acks.length === 3);
    expect(runtime.acks.map(({ accepted }) => accepted)).toEqual([true, true, false]);
    expect(runtime.acks[2]).toMatchObject({ refusal: 'unable', reason: 'the agent has no free slot' });
  });

  it('ends a command that ran too long, with everything that it started, also if it ignores SIGTERM', async () => {
    await start();
    const script = `trap '' TERM; (trap '' TERM; setsid sleep 987) & echo $! > ${mark()}; while :; do sleep 1; done`;
    runtime.offer(runtime.statement({ command: shell(script), timeout_seconds: 3 }));
    await reported();
    expect(runtime.reports).toMatchObject([{ status: 'timed_out', exit_code: null, signal: 'SIGKILL' }]);
    const left = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && argumentsOf(pid).includes('987'));
    expect(left).toEqual([]);
  });

  it('stops a command that is canceled, and gives it time to end', async () => {
    await start();
    runtime.offer(
      runtime.statement({
        command: shell("trap 'echo cleaned up; exit 7' TERM; echo ready; while :; do sleep 0.05; done"),
      }),
    );
    await runtime.until(() => runtime.outputOf(ASSIGNMENT_ID).includes('ready'));
    runtime.cancels = [{ assignment_id: ASSIGNMENT_ID, reason: 'by olivia' }];
    await reported();
    expect(runtime.reports).toMatchObject([{ status: 'canceled', exit_code: 7, reason: 'it was canceled: by olivia' }]);
    expect(runtime.outputOf(ASSIGNMENT_ID)).toContain('cleaned up');
  });

  it('stops a command whose lease is lost', async () => {
    await start();
    runtime.offer(runtime.statement({ command: shell('echo ready; sleep 30') }));
    await runtime.until(() => runtime.outputOf(ASSIGNMENT_ID).includes('ready'));
    runtime.behaviour.completeWith = 'lease_lost';
    runtime.lost.add(ASSIGNMENT_ID);
    await reported();
    expect(runtime.reports).toMatchObject([{ status: 'canceled', reason: 'the lease was lost' }]);
  });

  it.each([
    ['cannot be reached', () => ({ cut: () => true })],
    ['fails', () => ({ failWith: 500 })],
  ])(
    'stops a command before its lease ends if the runtime %s, and reports it when it responds again',
    async (_name, outage) => {
      // Time passes faster here: a shorter lease could end before a busy machine has started the command.
      runtime.behaviour.leaseMs = 36_000;
      await start();
      runtime.offer(runtime.statement({ command: shell('echo ready; exec sleep 654') }));
      await runtime.until(() => runtime.outputOf(ASSIGNMENT_ID).includes('ready'));
      const leaseUntil = fastNow() + runtime.behaviour.leaseMs;
      Object.assign(runtime.behaviour, outage());
      await lineOf('ended');
      expect(fastNow()).toBeLessThan(leaseUntil);
      Object.assign(runtime.behaviour, { cut: undefined, failWith: undefined });
      await reported();
      expect(runtime.reports).toMatchObject([{ status: 'canceled', reason: 'the lease was lost', signal: 'SIGTERM' }]);
    },
  );

  it('survives an API that fails, with growing pauses, and continues', async () => {
    await start();
    await runtime.until(() => runtime.syncs.length > 0);
    runtime.behaviour.failWith = 500;
    const before = runtime.routes.length;
    await runtime.until(() => runtime.routes.length > before + 2);
    runtime.behaviour.failWith = undefined;
    runtime.offer(runtime.statement());
    await reported();
    expect(running[0]?.lines.join('\n')).toContain('the runtime responds again');
  });

  it('works with a clock that is 5 minutes wrong, in both directions', async () => {
    for (const skew of [-300_000, 300_000]) {
      const agent = await start(dir, withSkew(skew));
      const session = `run_${skew}`;
      runtime.offer(runtime.statement({ session_id: session, assignment_id: `${session}.0.1` }));
      await runtime.until(() => runtime.reports.some(({ assignment_id }) => assignment_id === `${session}.0.1`));
      await agent.stop();
    }
    expect(runtime.reports.map(({ status }) => status)).toEqual(['succeeded', 'succeeded']);
    expect(runtime.refused).toEqual(['SIGNATURE_EXPIRED', 'SIGNATURE_EXPIRED']);
  });

  it('does not work with a clock that it cannot correct, and says so', async () => {
    const agent = runAgent(dir, withSkew(3_600_000));
    await runtime.until(() => runtime.refused.length >= 2);
    await expect(agent.then(({ ended }) => ended)).rejects.toThrow(/SIGNATURE_EXPIRED/);
  });

  it('drains: it finishes its commands, accepts no new ones, and unregisters', async () => {
    const agent = await start();
    runtime.offer(runtime.statement({ command: shell(`while [ ! -e ${mark()} ]; do sleep 0.05; done; echo done`) }));
    await runtime.until(() => runtime.syncs.some((sync) => sync.running.length === 1));
    const ended = agent.stop();
    await runtime.until(() => runtime.routes.includes('agt_1/drain'));
    runtime.offer(runtime.statement({ session_id: OTHER_RUN_ID, assignment_id: OTHER_ASSIGNMENT_ID }));
    await runtime.until(() => runtime.acks.length === 2);
    writeFileSync(mark(), '');
    expect(await ended).toBe('drained');
    expect(runtime.acks[1]).toMatchObject({ accepted: false, refusal: 'unable', reason: 'the agent is draining' });
    expect(runtime.reports).toMatchObject([{ status: 'succeeded' }]);
    expect(runtime.routes.at(-1)).toBe('agt_1/unregister');
  });

  it('stores 10 MB of 100 MB of output, and counts the rest', async () => {
    await start();
    runtime.offer(
      runtime.statement({
        command: { executable: '/usr/bin/head', args: ['-c', String(100 * 1024 * 1024), '/dev/zero'] },
        timeout_seconds: 3_600,
      }),
    );
    await reported();
    const [report] = runtime.reports;
    expect(report).toMatchObject({ status: 'succeeded', exit_code: 0 });
    expect(report?.output.bytes).toBeLessThanOrEqual(OUTPUT_MAX_BYTES);
    expect(report?.output.bytes).toBeGreaterThan(OUTPUT_MAX_BYTES - 1_000);
    expect((report?.output.bytes ?? 0) + (report?.output.dropped_bytes ?? 0)).toBeGreaterThanOrEqual(100 * 1024 * 1024);
    expect(runtime.outputOf(ASSIGNMENT_ID, 'status')).toContain('reached its limit');
  });

  describe('a new key', () => {
    const [second, third] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];
    const type = KEY_INTRODUCTION_PAYLOAD_TYPE;
    const spkiOf = (key: KeyObject) => key.export({ type: 'spki', format: 'der' });
    const introduced = (key: KeyObject, by: { publicKey: KeyObject; privateKey: KeyObject }) => ({
      envelope: runtime.envelope(
        {
          version: 1,
          key: { key_id: 'key/new', algorithm: 'ed25519', public_key: spkiOf(key).toString('base64') },
          replaces: createHash('sha256').update(spkiOf(by.publicKey)).digest('hex'),
          issued_at: new Date(fastNow()).toISOString(),
        },
        { type, key: by.privateKey },
      ),
    });
    const offerSignedBy = (key: KeyObject, run: string) => {
      const statement = runtime.statement({ assignment_id: `${run}.0.1`, session_id: run });
      runtime.offer(statement, runtime.envelope(statement, { key }));
    };

    it('that the pinned key introduces replaces it, and the agent needs no enrolment, also after a restart', async () => {
      runtime.introductions = [introduced(second.publicKey, runtime.signingKey), introduced(third.publicKey, second)];
      const first = await start();
      offerSignedBy(third.privateKey, RUN_ID);
      await runtime.until(() => runtime.reports.length === 1);
      await first.stop();
      runtime.introductions = [];
      await start();
      offerSignedBy(third.privateKey, OTHER_RUN_ID);
      await runtime.until(() => runtime.reports.length === 2);
      offerSignedBy(runtime.signingKey.privateKey, 'run_3');
      offerSignedBy(second.privateKey, 'run_4');
      await runtime.until(() => runtime.acks.length === 4);
      expect(runtime.acks.map((ack) => ack.accepted)).toEqual([true, true, false, false]);
    });

    it('that is introduced while the agent runs is found when an assignment is signed with it', async () => {
      await start();
      await runtime.until(() => runtime.syncs.length > 0);
      runtime.introductions = [introduced(second.publicKey, runtime.signingKey)];
      offerSignedBy(second.privateKey, RUN_ID);
      await reported();
      expect(runtime.acks).toMatchObject([{ accepted: true }]);
    });

    it('that an unknown key introduces, or that was replaced before, signs nothing for the agent', async () => {
      runtime.introductions = [introduced(second.publicKey, second), introduced(third.publicKey, second)];
      const first = await start();
      offerSignedBy(second.privateKey, RUN_ID);
      await runtime.until(() => runtime.acks.length === 1);
      await first.stop();
      runtime.introductions = [introduced(third.publicKey, runtime.signingKey)];
      const moved = await start();
      await runtime.until(() => runtime.syncs.length > 0);
      await moved.stop();
      // Replayed: the first key introduced the second one, too, but was replaced since.
      runtime.introductions = [introduced(second.publicKey, runtime.signingKey)];
      await start();
      offerSignedBy(second.privateKey, OTHER_RUN_ID);
      await runtime.until(() => runtime.acks.length === 2);
      expect(runtime.acks.map((ack) => !ack.accepted && ack.refusal)).toEqual(['bad_signature', 'bad_signature']);
      expect(runtime.reports).toEqual([]);
    });
  });
});

function argumentsOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
  } catch {
    return [];
  }
}

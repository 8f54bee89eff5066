import { beforeEach, describe, expect, it } from 'vitest';
import {
  AcceptedList,
  acceptedListClaim,
  acceptedListDocument,
  buildAcceptedList,
} from '../../../lambdas/evidence/accepted-runs/accepted-list.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { auditEvidence } from '../../../lambdas/evidence/verify/audit-evidence.ts';
import { trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import type { HeldFiles } from '../../../lambdas/evidence/verify/verify-daily-log.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { RunDraft } from '../../../lambdas/run/run-draft.ts';
import { newRun } from '../../../lambdas/run-changes/new-run.ts';
import { crashesAt } from '../../fakes/passage.ts';
import { LoggedDays } from '../daily-log/logged-days.ts';

const HOUR_MS = 60 * 60_000;

let days: LoggedDays;
beforeEach(() => {
  days = new LoggedDays('2026-03-01T10:20:00.000Z');
});

const now = () => new Date(days.clock.now()).toISOString();

async function accept(runId: string, world = days): Promise<void> {
  const at = new Date(world.clock.now()).toISOString();
  const trigger = { source: 'github' as const, event: 'issues.opened', fields: {}, payload: {}, receivedAt: at };
  const automation = { name: 'label', workspace: 'default', workflow: { name: 'label', version: 1 } };
  const run = newRun({ runId, tenant: 'acme', automation, key: runId, trigger, payloadHash: sha256Hex('') });
  await world.runs.ingest({ records: [], trigger, runs: [run], at });
}

/** One more commit of the run. */
async function commitOnce(runId: string, facts: Parameters<RunDraft['note']>[0] = {}): Promise<void> {
  const run = days.runs.inside.run('acme', runId);
  if (!run) throw new Error(`there is no run ${runId}`);
  const draft = new RunDraft({ run, steps: new Map() }, now());
  draft.note(facts).record({ type: 'run.assigned', assignee: 'ben', actor: 'ben' });
  expect(await days.runs.commit(draft.seal())).toEqual({ outcome: 'committed' });
}

/** Seals the run: a bundle with its commits, the record, and the entry in the log of the day. */
async function seal(runId: string): Promise<void> {
  const commits = days.runs.inside.commits('acme', runId);
  const document = Buffer.from(JSON.stringify({ run: { runId, completedAt: now() }, commits }));
  await days.store.putOnce(`evidence/acme/${runId}/bundle.json`, document, 'application/json');
  await days.seal(runId);
  const record = { documentKey: 'd', envelopeKey: 'e', sha256: sha256Hex(document), sizeBytes: 1, sealedAt: now() };
  const logged = { runId, sha256: record.sha256, head: sha256Hex(''), count: commits.length, sealedAt: now() };
  await days.runs.completeSeal(`acme.${runId}.seal_evidence`, 'acme', runId, record, { logged, outboxEntries: [] });
}

const listOf = (name: string) =>
  AcceptedList.parse(JSON.parse(String(days.store.peek(`log/acme/accepted/${name}.json`))));
const idsIn = (name: string) => listOf(name).accepted.map(({ runId }) => runId);
const openIn = (name: string) => listOf(name).open.map(({ runId }) => runId);

describe('the lists of accepted runs', () => {
  it('have each run once, in the hour in which it was accepted, and the head of each that is open', async () => {
    await accept('run_b');
    await accept('run_a');
    days.goTo('2026-03-01T10:59:59.999Z');
    await accept('run_c');
    await seal('run_b');
    days.goTo('2026-03-01T11:00:00.000Z');
    await accept('run_d');
    days.goTo('2026-03-01T11:14:59.999Z');
    expect(await days.list()).toEqual(['2026-03-01T10:00:00.000Z']);
    days.goTo('2026-03-01T11:15:00.000Z');
    expect(await days.list()).toEqual(['2026-03-01T11:00:00.000Z']);
    expect(await days.list()).toEqual([]);
    expect(idsIn('2026-03-01T11')).toEqual(['run_a', 'run_b', 'run_c']);
    const { headHash, seq } = days.runs.inside.run('acme', 'run_a') ?? {};
    expect(listOf('2026-03-01T11').open).toMatchObject([
      { runId: 'run_a', status: 'queued', head: headHash, count: seq, deadlineAt: '2026-03-01T12:20:00.000Z' },
      { runId: 'run_c' },
    ]);
    days.goTo('2026-03-01T12:20:00.000Z');
    await seal('run_c');
    await days.list();
    expect([idsIn('2026-03-01T12'), openIn('2026-03-01T12')]).toEqual([['run_d'], ['run_a', 'run_d']]);
    expect(listOf('2026-03-01T12').previous?.sha256).toBe(
      sha256Hex(days.store.peek('log/acme/accepted/2026-03-01T11.json') ?? ''),
    );
  });

  it('cover the time of an outage with one list', async () => {
    await days.list();
    await accept('run_a');
    days.goTo('2026-03-04T06:20:00.000Z');
    expect(await days.list()).toEqual(['2026-03-04T06:00:00.000Z']);
    expect(listOf('2026-03-04T06')).toMatchObject({ from: '2026-03-01T10:00:00.000Z', accepted: [{ runId: 'run_a' }] });
  });

  it('have a run that the index showed late in the next list', async () => {
    await days.list();
    await accept('run_late');
    days.accepted.notShown.add('run_late');
    days.goTo('2026-03-01T11:20:00.000Z');
    await days.list();
    days.accepted.notShown.clear();
    days.goTo('2026-03-01T12:20:00.000Z');
    await days.list();
    days.goTo('2026-03-01T13:20:00.000Z');
    await days.list();
    expect(['11', '12', '13'].map((hour) => idsIn(`2026-03-01T${hour}`))).toEqual([[], ['run_late'], []]);
  });

  it('add the time that a run waits for people to its deadline', async () => {
    await days.list();
    await accept('run_a');
    await commitOnce('run_a', { waitingForPeopleSince: now() });
    days.goTo('2026-03-02T10:20:00.000Z');
    await days.list();
    expect(listOf('2026-03-02T10').open).toMatchObject([{ deadlineAt: '2026-03-02T12:00:00.000Z' }]);
  });
});

/** The number of calls to rows and bucket that one further list takes. */
const CALLS = 10;

describe('a crash while a list is written', () => {
  const calls = Array.from({ length: CALLS }, (_, index) => index + 1);
  it.each(calls.flatMap((call) => [[call, 'before'] as const, [call, 'after'] as const]))(
    'at call %i, %s it took effect, loses no run, and every list is signed',
    async (call, when) => {
      await accept('run_a');
      days.goTo('2026-03-01T11:20:00.000Z');
      await days.list();
      await accept('run_b');
      days.goTo('2026-03-01T12:20:00.000Z');
      days.disturb(crashesAt(call, when));
      await expect(days.list()).rejects.toThrow('crashed');
      days.disturb((_name, run) => run());
      // The runs go on before the next invocation.
      await commitOnce('run_a');
      await accept('run_c');
      await seal('run_b');
      days.goTo('2026-03-01T13:20:00.000Z');
      await days.list();
      expect(audited('2026-02-28').findings).toEqual([]);
      const listed = days.held().lists.flatMap(({ name }) => idsIn(name));
      expect(listed).toEqual(['run_a', 'run_b', 'run_c']);
      expect(openIn('2026-03-01T13')).toEqual(['run_a', 'run_c']);
    },
  );

  it('takes this many calls', async () => {
    await days.list();
    await accept('run_a');
    days.goTo('2026-03-01T11:20:00.000Z');
    let count = 0;
    days.disturb((_name, run) => {
      count += 1;
      return run();
    });
    await days.list();
    expect(count).toBe(CALLS);
  });
});

describe('an invocation that another one overtakes', () => {
  it.each(Array.from({ length: CALLS }, (_, index) => index + 1))('at call %i lists no hour again', async (call) => {
    await accept('run_a');
    days.goTo('2026-03-01T11:20:00.000Z');
    await days.list();
    await accept('run_b');
    days.goTo('2026-03-01T12:20:00.000Z');
    let calls = 0;
    days.disturb(async (_name, run) => {
      calls += 1;
      if (calls === call) {
        days.goTo('2026-03-01T13:20:00.000Z');
        await days.list();
      }
      return run();
    });
    await days.list();
    days.goTo('2026-03-01T14:20:00.000Z');
    await days.list();
    expect(audited('2026-02-28').findings).toEqual([]);
    expect(days.held().lists.flatMap(({ name }) => idsIn(name))).toEqual(['run_a', 'run_b']);
  });
});

describe('a list that somebody else stored first', () => {
  const forged = (change: (list: AcceptedList) => AcceptedList) => async () => {
    await accept('run_a');
    const twin = new LoggedDays('2026-03-01T10:20:00.000Z');
    await accept('run_a', twin);
    twin.goTo('2026-03-01T11:20:00.000Z');
    await twin.list();
    const list = AcceptedList.parse(JSON.parse(String(twin.store.peek('log/acme/accepted/2026-03-01T11.json'))));
    await days.store.putOnce('log/acme/accepted/2026-03-01T11.json', acceptedListDocument(change(list)), '');
    days.goTo('2026-03-01T11:20:00.000Z');
    await expect(days.list()).rejects.toMatchObject({ code: 'CHAIN_BROKEN' });
    expect(days.store.keys()).not.toContain('log/acme/accepted/2026-03-01T11.dsse.json');
  };

  it(
    'is not signed with a run that was never accepted',
    forged((list) => ({ ...list, accepted: [...list.accepted, { runId: 'run_x', acceptedAt: list.from }] })),
  );
  it(
    'is not signed without a run that is open',
    forged((list) => ({ ...list, open: [] })),
  );
  it(
    'is not signed with another head',
    forged((list) => ({ ...list, open: list.open.map((run) => ({ ...run, head: sha256Hex('other') })) })),
  );
});

function audited(through: string, { lists = days.held().lists, bundles = days.held().bundles } = {}) {
  const { logs } = days.held();
  const keys = [trustedKey(days.signer.publicKey)];
  const checkBundle = () => undefined;
  const [audit] = auditEvidence(logs, bundles, { keys, lists, tenants: [], checkBundle, from: undefined, through });
  if (!audit) throw new Error('there is nothing to audit');
  const findings = audit.findings
    .filter(({ problem }) => through >= '2026-03-01' || !problem.startsWith('its log'))
    .map(({ about, problem }) => `${about} ${problem}`);
  return { ...audit, findings };
}

async function hours(until: string): Promise<void> {
  while (now() < until) {
    days.clock.advance(HOUR_MS);
    await days.list();
    await days.close();
  }
}

describe('an audit', () => {
  it('names a run whose bundle was withheld, a day after its deadline and not before', async () => {
    await days.list();
    await days.close();
    await accept('run_a');
    await accept('run_withheld');
    await seal('run_a');
    await hours('2026-03-02T12:20:00.000Z');
    expect(audited('2026-03-01')).toMatchObject({ findings: [], open: ['run_withheld'], confirmed: 1 });
    await hours('2026-03-02T13:20:00.000Z');
    expect(audited('2026-03-01').findings).toEqual([
      'run_withheld was accepted 2026-03-01T10:20:00.000Z and is not sealed, more than a day after its deadline 2026-03-01T12:20:00.000Z: it is queued',
    ]);
  });

  it('names a run whose rows were deleted', async () => {
    await days.list();
    await accept('run_gone');
    days.goTo('2026-03-01T11:20:00.000Z');
    await days.list();
    days.accepted.deleted.add('run_gone');
    await hours('2026-03-03T01:20:00.000Z');
    expect(audited('2026-03-02').findings).toEqual([expect.stringMatching(/^run_gone .*: its row is missing$/)]);
  });

  it('names a run that is no longer open, and has neither a bundle nor an entry in a log', async () => {
    await days.list();
    await accept('run_a');
    const record = { documentKey: 'd', envelopeKey: 'e', sha256: sha256Hex(''), sizeBytes: 1, sealedAt: now() };
    const logged = { runId: 'run_a', sha256: record.sha256, head: sha256Hex(''), count: 1, sealedAt: now() };
    await days.runs.completeSeal('acme.run_a.seal', 'acme', 'run_a', record, { logged, outboxEntries: [] });
    await hours('2026-03-02T01:20:00.000Z');
    expect(audited('2026-03-01').findings).toEqual([
      'run_a was accepted 2026-03-01T10:20:00.000Z, is no longer open, and has neither a bundle here nor an entry in a log',
    ]);
  });

  it('names a bundle whose commits were made again after a list had their head', async () => {
    await days.list();
    await accept('run_a');
    await commitOnce('run_a');
    days.goTo('2026-03-01T11:20:00.000Z');
    await days.list();
    await seal('run_a');
    await hours('2026-03-02T01:20:00.000Z');
    const whole = days.held().bundles;
    expect(audited('2026-03-01').findings).toEqual([]);
    const bundles = whole.map((held): HeldFiles => {
      const bundle = JSON.parse(String(held.document));
      bundle.commits[1].hash = sha256Hex('another');
      return { ...held, document: Buffer.from(JSON.stringify(bundle)) };
    });
    expect(audited('2026-03-01', { bundles }).findings[0]).toMatch(
      /^run_a has another commit 2 than the list of accepted runs of 2026-03-01T11: [0-9a-f]{64}$/,
    );
  });

  it('names lists that are missing, edited, or signed again', async () => {
    await days.list();
    await accept('run_a');
    await seal('run_a');
    await hours('2026-03-02T02:20:00.000Z');
    const { lists } = days.held();
    const without = (name: string) => lists.filter((list) => list.name !== name);
    const found = (held: HeldFiles[]) => audited('2026-03-01', { lists: held }).findings;
    expect(found(lists)).toEqual([]);
    expect(found(without('2026-03-01T12'))).toEqual([
      '2026-03-01T13 the lists of accepted runs from 2026-03-01T11 to 2026-03-01T12 are missing',
    ]);
    expect(found(without('2026-03-01T10'))[0]).toContain('which is missing with all before it (or give --from)');
    const early = lists.filter(({ name }) => name < '2026-03-01T20');
    expect(found(early)).toEqual([
      '2026-03-01T19 is the last list of accepted runs; those up to 2026-03-02T00 are missing',
    ]);
    expect(found([])[0]).toContain('has no lists of accepted runs here');

    const target = lists.find(({ name }) => name === '2026-03-01T11') as HeldFiles;
    const list = buildAcceptedList({ ...listOf('2026-03-01T11'), accepted: [] });
    const document = acceptedListDocument(list);
    const edited = lists.map((each) => (each === target ? { ...each, document } : each));
    expect(found(edited)).toEqual([
      '2026-03-01T11 its list of accepted runs differs from the signed list of accepted runs',
      '2026-03-01T12 was made after another list of 2026-03-01T11 than the one that is here',
    ]);
    const envelope = await signClaim(acceptedListClaim(list, sha256Hex(document)), days.signer);
    const resigned = lists.map((each) => (each === target ? { ...each, document, envelope } : each));
    expect(found(resigned)).toEqual([
      '2026-03-01T12 was made after another list of 2026-03-01T11 than the one that is here',
    ]);
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import {
  changeLogClaim,
  changeLogDocument,
  changeLogEnvelopeKey,
  changeLogKey,
  type HistoryEntry,
  type LoggedChange,
  loggedChange,
} from '../../lambdas/evidence/change-log/change-log.ts';
import {
  type ChangeLogRows,
  type ClosedChanges,
  closeChangeDays,
} from '../../lambdas/evidence/change-log/close-change-days.ts';
import { signOnce } from '../../lambdas/evidence/signing/dsse.ts';
import { trustedKey } from '../../lambdas/evidence/verify/trusted-keys.ts';
import {
  auditChanges,
  checkChangeValues,
  parseChangeLog,
  readChangeLog,
} from '../../lambdas/evidence/verify/verify-change-log.ts';
import type { HeldFiles } from '../../lambdas/evidence/verify/verify-daily-log.ts';
import { sha256Hex } from '../../lambdas/run/canonical-json.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryEvidenceStore } from '../fakes/memory/memory-evidence-store.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';

class MemoryChangeLog implements ChangeLogRows {
  readonly all: HistoryEntry[] = [];
  closed: ClosedChanges | undefined;

  async changes(_tenant: string, day: string, { andBefore } = { andBefore: false }): Promise<LoggedChange[]> {
    const until = `${day}~`;
    return this.all
      .filter(({ at }) => at < until && (andBefore || at >= day))
      .sort((a, b) => (a.at < b.at ? -1 : 1))
      .map(loggedChange);
  }

  async lastClosed(): Promise<ClosedChanges | undefined> {
    return this.closed;
  }

  async saveLastClosed(_tenant: string, closed: ClosedChanges): Promise<void> {
    this.closed = closed;
  }
}

let rows: MemoryChangeLog;
let store: MemoryEvidenceStore;
let clock: FakeClock;
const signer = new SeededSigner();
beforeEach(() => {
  rows = new MemoryChangeLog();
  store = new MemoryEvidenceStore();
  clock = new FakeClock('2026-03-02T01:00:00.000Z');
});

const change = (changeId: string, at: string, after: unknown = { role: 'member' }): HistoryEntry => ({
  changeId,
  at,
  actor: 'olivia',
  kind: 'person',
  name: 'ana',
  action: 'changed',
  before: null,
  after,
  salt: `salt of ${changeId}`,
});
const close = () => closeChangeDays({ rows, store, signer, clock, log: new MemoryLog() }, 'acme');
const goTo = (at: string) => clock.advance(Date.parse(at) - clock.now());
const idsOf = (day: string) =>
  parseChangeLog(store.peek(changeLogKey('acme', day)) ?? Buffer.from(''))?.changes.map(({ changeId }) => changeId);

function held(): HeldFiles[] {
  return store.keys().flatMap((key) => {
    const [, tenant, name] = /^log\/([^/]+)\/changes\/([\d-]+)\.json$/.exec(key) ?? [];
    const document = store.peek(key);
    if (!tenant || !name || !document) return [];
    return [{ tenant, name, document, envelope: store.peek(changeLogEnvelopeKey(tenant, name)) }];
  });
}
const keys = [trustedKey(signer.publicKey)];
const audit = (files = held(), through = '2026-03-03') => auditChanges(files, { keys, from: undefined, through })[0];

/** Three closed days, the second without a change. */
async function threeDays(): Promise<void> {
  rows.all.push(change('a', '2026-02-20T10:00:00.000Z'), change('b', '2026-03-01T10:00:00.000Z'));
  await close();
  goTo('2026-03-04T01:00:00.000Z');
  rows.all.push(change('c', '2026-03-03T10:00:00.000Z'));
  await close();
}

describe('the changes of a day', () => {
  it('are written and signed when the day is over; the first file has all earlier ones, and no day is left out', async () => {
    rows.all.push(change('today', '2026-03-02T00:30:00.000Z'));
    await threeDays();
    expect(idsOf('2026-03-01')).toEqual(['a', 'b']);
    expect(idsOf('2026-03-02')).toEqual(['today']);
    expect(idsOf('2026-03-03')).toEqual(['c']);
    expect(rows.closed).toMatchObject({ first: '2026-03-01', day: '2026-03-03' });
    expect(audit()).toMatchObject({ changes: 4, findings: [] });
  });

  it('are closed once, and again if a crash prevented that the day was recorded', async () => {
    await threeDays();
    const written = store.keys().length;
    expect(await close()).toEqual([]);
    rows.closed = { ...(rows.closed as ClosedChanges), day: '2026-03-02', sha256: sha('2026-03-02') };
    expect(await close()).toEqual(['2026-03-03']);
    expect(store.keys()).toHaveLength(written);
    expect(audit()?.findings).toEqual([]);
  });

  it('that were written after their day was closed are in the next file', async () => {
    await threeDays();
    rows.all.push(change('late', '2026-03-03T23:59:59.999Z'));
    goTo('2026-03-05T01:00:00.000Z');
    await close();
    expect(idsOf('2026-03-04')).toEqual(['late']);
  });

  it('are in the locked file without names and values: only when, what kind, and a digest', async () => {
    const { salt: _none, ...unsalted } = change('b', '2026-03-01T11:00:00.000Z');
    rows.all.push(change('a', '2026-03-01T10:00:00.000Z', { identities: ['github:ana-dev'] }), unsalted);
    await close();
    const text = String(store.peek(changeLogKey('acme', '2026-03-01')));
    for (const personal of ['olivia', '"ana"', 'ana-dev', 'salt']) expect(text).not.toContain(personal);
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(JSON.parse(text).changes).toEqual([
      { changeId: 'a', at: '2026-03-01T10:00:00.000Z', kind: 'person', action: 'changed', digest },
      // Somebody could guess the values of a change without a salt.
      { changeId: 'b', at: '2026-03-01T11:00:00.000Z', kind: 'person', action: 'changed', digest: null },
    ]);
  });

  it('are not signed if the stored file differs from the history', async () => {
    rows.all.push(change('a', '2026-03-01T10:00:00.000Z'));
    await store.putOnce(changeLogKey('acme', '2026-03-01'), Buffer.from('{}'), 'application/json');
    await expect(close()).rejects.toMatchObject({ code: 'CHAIN_BROKEN' });
    expect(rows.closed).toBeUndefined();
  });
});

const sha = (day: string) => {
  const { previous } = parseChangeLog(store.peek(changeLogKey('acme', '2026-03-03')) as Buffer) ?? {};
  if (previous?.day !== day) throw new Error(`${day} is not the previous day`);
  return previous.sha256;
};

describe('an auditor', () => {
  beforeEach(threeDays);

  const changed = (day: string, edit: (file: HeldFiles) => Partial<HeldFiles>) =>
    held().map((file) => (file.name === day ? { ...file, ...edit(file) } : file));
  const problems = (files: HeldFiles[], through?: string) =>
    audit(files, through)?.findings.map(({ about, problem }) => `${about} ${problem}`);

  it('finds a change that was edited or removed in a file', () => {
    const edited = changed('2026-03-01', ({ document }) => ({
      document: Buffer.from(document.toString().replace('changed', 'deleted')),
    }));
    expect(problems(edited)?.[0]).toContain('2026-03-01 its file of changes differs from the signed file of changes');
    expect(problems(changed('2026-03-03', () => ({ document: Buffer.from('{}') })))?.[0]).toContain(
      'edited or cannot be read',
    );
  });

  it('finds a missing file, including the newest and the first', () => {
    const without = (day: string) => held().filter(({ name }) => name !== day);
    expect(problems(without('2026-03-02'))?.[0]).toContain('2026-03-02 its file of changes is missing');
    expect(problems(without('2026-03-03'))?.[0]).toContain('2026-03-03 its file of changes is missing');
    expect(problems(without('2026-03-01'))?.[0]).toContain('follows that of 2026-03-01, which is missing');
  });

  it('finds a file that is unsigned, signed by another key, or of another day', () => {
    expect(problems(changed('2026-03-02', () => ({ envelope: undefined })))?.[0]).toContain('is not signed');
    const other = auditChanges(held(), {
      keys: [trustedKey(new SeededSigner('another').publicKey)],
      from: undefined,
      through: '2026-03-03',
    });
    expect(other[0]?.findings[0]?.problem).toContain('is not signed by that key');
    const [first] = held();
    const swapped = changed('2026-03-02', () => ({ document: first?.document, envelope: first?.envelope }));
    expect(problems(swapped)?.[0]).toContain('is that of acme, 2026-03-01, under another name');
  });
});

describe('the values of a signed file', () => {
  const DAY = '2026-03-01';
  const values = (changes: unknown[], facts: object = {}) =>
    Buffer.from(JSON.stringify({ format: 'countersign.change-values/1', tenant: 'acme', day: DAY, ...facts, changes }));
  const check = (document: Buffer) => {
    const file = parseChangeLog(store.peek(changeLogKey('acme', DAY)) as Buffer);
    if (!file) throw new Error('the file cannot be read');
    return checkChangeValues(file, document);
  };
  const ofDay = () => rows.all.filter(({ at }) => at < '2026-03-02');
  beforeEach(threeDays);

  it('are proven by the digests, and may be deleted', () => {
    expect(check(values(ofDay()))).toEqual({ proven: 2, unproven: 0 });
    expect(check(values(ofDay().slice(1)))).toEqual({ proven: 1, unproven: 1 });
    expect(check(values([...ofDay(), ...ofDay()]))).toEqual({ proven: 2, unproven: 0 });
  });

  it.each([
    ['changed', () => values(ofDay().map((each) => ({ ...each, actor: 'nobody' }))), 'the values of a are not those'],
    ['given another salt', () => values(ofDay().map((each) => ({ ...each, salt: 'x' }))), 'the values of a are not'],
    ['of no change of the day', () => values(rows.all), 'the values of c are not those that were signed'],
    ['of another day', () => values(ofDay(), { day: '2026-03-02' }), 'is that of acme, 2026-03-02'],
    ['no JSON', () => Buffer.from('{'), 'cannot be read'],
  ])('that are %s are reported', (_what, document, problem) => {
    expect(check(document())).toMatchObject({ proven: 0, unproven: 2, problem: expect.stringContaining(problem) });
  });
});

it('a file that an earlier release signed, with values, still verifies and is continued', async () => {
  const { salt: _none, ...former } = change('a', '2026-02-28T10:00:00.000Z');
  const file = {
    format: 'countersign.change-log/1' as const,
    tenant: 'acme',
    day: '2026-02-28',
    previous: null,
    changes: [former],
  };
  const document = changeLogDocument(file);
  const sha256 = sha256Hex(document);
  await store.putOnce(changeLogKey('acme', file.day), document, 'application/json');
  await signOnce(
    { store, signer },
    { key: changeLogEnvelopeKey('acme', file.day), claim: changeLogClaim(file, sha256), problem: () => undefined },
  );
  rows.closed = { day: file.day, sha256, first: file.day };
  rows.all.push(former, change('b', '2026-03-01T10:00:00.000Z'));
  await close();
  expect(idsOf('2026-03-01')).toEqual(['b']);
  expect(audit(held(), '2026-03-01')).toMatchObject({ changes: 2, findings: [] });
  expect(readChangeLog(held()[0] as HeldFiles, keys).problem).toBeUndefined();
});

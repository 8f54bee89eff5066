import { beforeEach, describe, expect, it } from 'vitest';
import { buildDayLog, DayLog, documentOf, logClaim } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import { signClaim } from '../../../lambdas/evidence/signing/dsse.ts';
import { type AuditTerms, auditEvidence } from '../../../lambdas/evidence/verify/audit-evidence.ts';
import { trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import type { HeldFiles } from '../../../lambdas/evidence/verify/verify-daily-log.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { LoggedDays } from './logged-days.ts';

const SIGNER = new SeededSigner();
const TERMS: AuditTerms = {
  keys: [trustedKey(SIGNER.publicKey)],
  lists: [],
  tenants: [],
  checkBundle: () => undefined,
  from: undefined,
  through: '2026-03-03',
};

/** Three days with two, no and one bundle; and one more bundle on the fourth day, which has not ended. */
let logs: HeldFiles[];
let bundles: HeldFiles[];
let lists: HeldFiles[];
beforeEach(async () => {
  const days = new LoggedDays('2026-03-01T10:00:00.000Z');
  await days.seal('run_a');
  await days.seal('run_b');
  days.goTo('2026-03-03T10:00:00.000Z');
  await days.seal('run_c');
  days.goTo('2026-03-04T10:00:00.000Z');
  await days.seal('run_d');
  await days.list();
  await days.close();
  ({ logs, bundles, lists } = days.held());
});

function audit(terms: Partial<AuditTerms> = {}) {
  const [result] = auditEvidence(logs, bundles, { ...TERMS, lists, ...terms });
  if (!result) throw new Error('there is nothing to audit');
  return result;
}

const findings = (terms: Partial<AuditTerms> = {}) =>
  audit(terms).findings.map(({ about, problem }) => `${about} ${problem}`);

/** Without those of lists, which are named by an hour. */
const ofLogs = (terms: Partial<AuditTerms>) => findings(terms).filter((line) => /^[\d-]+ /.test(line));

const without = (held: HeldFiles[], name: string) => held.filter((each) => each.name !== name);
const changed = (held: HeldFiles[], name: string, change: (one: HeldFiles) => Partial<HeldFiles>) =>
  held.map((each) => (each.name === name ? { ...each, ...change(each) } : each));
const parse = ({ document }: HeldFiles) => DayLog.parse(JSON.parse(document.toString()));

/** A log that somebody made and signed with any key. */
async function replaceLog(day: string, change: (log: DayLog) => DayLog, signer = SIGNER): Promise<void> {
  const old = logs.find(({ name }) => name === day) as HeldFiles;
  const log = change(parse(old));
  const document = documentOf(log);
  const envelope = await signClaim(logClaim(log, sha256Hex(document)), signer);
  logs = changed(logs, day, () => ({ document, envelope }));
}

it('a complete folder is valid, also with bundles of the current day', () => {
  expect(audit()).toEqual({
    tenant: 'acme',
    days: ['2026-03-01', '2026-03-02', '2026-03-03'],
    confirmed: 3,
    pending: ['run_d'],
    open: [],
    findings: [],
  });
});

describe('an audit names', () => {
  it('every bundle that was deleted, with its place in the log', () => {
    bundles = without(without(bundles, 'run_a'), 'run_c');
    expect(findings()).toEqual([
      'run_a is deleted: entry 1 of 2 in the log of 2026-03-01, sealed 2026-03-01T10:00:00.000Z, has no bundle here',
      'run_c is deleted: entry 1 of 1 in the log of 2026-03-03, sealed 2026-03-03T10:00:00.000Z, has no bundle here',
    ]);
  });

  it('bundles of a tenant whose folder was deleted', () => {
    bundles = [];
    expect(findings()).toHaveLength(3);
  });

  it('a bundle that was replaced by another valid one', () => {
    const document = Buffer.from(JSON.stringify({ run: { completedAt: '2026-03-01T10:00:00.000Z' }, other: true }));
    bundles = changed(bundles, 'run_b', () => ({ document }));
    expect(findings()).toEqual([
      'run_b differs from the sealed bundle: entry 2 of 2 in the log of 2026-03-01 has another sha256',
    ]);
  });

  it('another valid bundle beside the sealed one, unless it has the same commits: its run was sealed again after a crash', () => {
    const [log] = logs.map(parse) as [DayLog];
    const sealed = bundles.find(({ name }) => name === 'run_b') as HeldFiles;
    const beside = (hash = '') => {
      const run = { completedAt: '2026-03-01T10:00:00.000Z' };
      return { ...sealed, document: Buffer.from(JSON.stringify({ run, head: { hash } })) };
    };
    bundles = [beside(log.entries[1]?.head), ...bundles];
    expect(findings()).toEqual([]);
    bundles = [...bundles, beside(sha256Hex('another history'))];
    expect(findings()).toEqual([
      'run_b differs from the sealed bundle: entry 2 of 2 in the log of 2026-03-01 has another sha256',
    ]);
  });

  it('a bundle that is invalid itself', () => {
    expect(findings({ checkBundle: ({ name }) => (name === 'run_b' ? 'commit 4 was edited' : undefined) })).toEqual([
      'run_b commit 4 was edited',
    ]);
  });

  it('a bundle that was added', () => {
    const document = Buffer.from(JSON.stringify({ run: { completedAt: '2026-03-02T10:00:00.000Z' } }));
    bundles = [...bundles, { tenant: 'acme', name: 'run_x', document, envelope: undefined }];
    expect(findings()).toEqual([
      'run_x ended on 2026-03-02 but is in no log up to 2026-03-03: it was sealed later or added by somebody',
    ]);
  });

  it('a day between others whose log and bundles are missing', () => {
    logs = without(logs, '2026-03-02');
    expect(findings()).toEqual(['2026-03-02 its log is missing']);
  });

  it('the newest logs, deleted together with their bundles', () => {
    logs = without(without(logs, '2026-03-02'), '2026-03-03');
    bundles = without(without(bundles, 'run_c'), 'run_d');
    expect(findings()).toEqual(['2026-03-02 its log and all up to that of 2026-03-03 are missing']);
  });

  it('the oldest logs, deleted together with their bundles, unless the audit starts later', () => {
    logs = without(logs, '2026-03-01');
    bundles = without(without(bundles, 'run_a'), 'run_b');
    expect(findings()).toEqual([
      '2026-03-02 follows the log of 2026-03-01, which is missing with all before it (or give --from)',
    ]);
    expect(findings({ from: '2026-03-02' })).toEqual([]);
  });

  it('a deleted tenant, if the auditor names it', () => {
    const audits = auditEvidence(logs, bundles, { ...TERMS, lists, tenants: ['acme', 'globex', 'globex'] });
    expect(audits.map(({ tenant, findings: found }) => ({ tenant, found }))).toEqual([
      { tenant: 'acme', found: [] },
      {
        tenant: 'globex',
        found: [{ about: 'globex', problem: 'has neither logs nor bundles here' }],
      },
    ]);
  });

  it('the newest logs of each named tenant, by the days of that tenant', async () => {
    const days = new LoggedDays('2026-03-01T10:00:00.000Z');
    await days.seal('run_g', { tenant: 'globex' });
    days.goTo('2026-03-02T10:00:00.000Z');
    await days.list('globex');
    await days.close('globex');
    const held = days.held();
    const audits = auditEvidence([...logs, ...held.logs], [...bundles, ...held.bundles], {
      ...TERMS,
      lists: [...lists, ...held.lists],
      tenants: ['acme', 'globex'],
    });
    expect(audits.map(({ findings: found }) => found)).toEqual([
      [],
      [
        { about: '2026-03-02', problem: 'its log and all up to that of 2026-03-03 are missing' },
        {
          about: '2026-03-02T09',
          problem: 'is the last list of accepted runs; those up to 2026-03-04T00 are missing',
        },
      ],
    ]);
  });

  it('a tenant that has bundles and no log', () => {
    logs = [];
    expect(findings()).toContain('2026-03-03 its log is missing');
  });

  it('a log with any edit', () => {
    const edit = (change: (log: DayLog) => unknown) =>
      changed(logs, '2026-03-01', (held) => ({ document: Buffer.from(JSON.stringify(change(parse(held)))) }));
    const whole = logs;
    const edits: ((log: DayLog) => unknown)[] = [
      (log) => ({ ...log, entries: log.entries.slice(1) }),
      (log) => ({ ...log, entries: log.entries.toReversed() }),
      (log) => ({ ...log, size: 1 }),
      (log) => ({ ...log, root: sha256Hex('') }),
      (log) => buildDayLog({ ...log, entries: log.entries.slice(1) }),
      (log) => ({ ...log, note: 'hello' }),
      (log) => ({ ...log, tenant: 'globex' }),
    ];
    for (const change of edits) {
      logs = whole;
      logs = edit(change);
      const found = findings();
      expect(found.filter((line) => line.startsWith('2026-03-01 its log'))).toHaveLength(1);
      expect(found).toContain('2026-03-02 was made after another log of 2026-03-01 than the one that is here');
    }
  });

  it('a log that was created again without a bundle and signed with the right key, because the next day differs', async () => {
    bundles = without(bundles, 'run_a');
    await replaceLog('2026-03-01', (log) => buildDayLog({ ...log, entries: log.entries.slice(1) }));
    expect(findings()).toEqual(['2026-03-02 was made after another log of 2026-03-01 than the one that is here']);
  });

  it('a log signed with another key, not signed at all, or with the envelope of another day', async () => {
    const whole = logs;
    await replaceLog('2026-03-03', (log) => log, new SeededSigner('another'));
    expect(findings()).toEqual(['2026-03-03 its log is not signed by that key']);
    logs = changed(whole, '2026-03-03', () => ({ envelope: undefined }));
    expect(findings()).toEqual(['2026-03-03 its log is not signed: the envelope beside it is missing']);
    logs = changed(whole, '2026-03-03', () => ({ envelope: whole[0]?.envelope }));
    expect(findings()).toEqual(['2026-03-03 its log differs from the signed log']);
    logs = changed(whole, '2026-03-03', () => ({ envelope: Buffer.from('{}') }));
    expect(findings()[0]).toMatch(/^2026-03-03 the envelope of its log cannot be read/);
    logs = changed(whole, '2026-03-03', () => ({ document: Buffer.from('{') }));
    expect(findings()[0]).toBe('2026-03-03 its log cannot be read');
  });

  it('a log under the name of another day or tenant', () => {
    logs = changed(logs, '2026-03-02', () => ({ ...logs[0], name: '2026-03-02' }));
    expect(findings()).toContain('2026-03-02 its log is that of acme, 2026-03-01, under another name');
  });
});

it('a key confirms neither a log of a day after its retirement nor one that names another key', async () => {
  const published = (keyId: string, validUntil: string | null) =>
    TERMS.keys.map((each) => ({ ...each, published: { keyId, validUntil } }));
  expect(ofLogs({ keys: published(SIGNER.keyId, null) })).toEqual([]);
  // The day after is still good: a rotation is deployed some time during its day.
  expect(ofLogs({ keys: published(SIGNER.keyId, '2026-03-02') })).toEqual([]);
  expect(ofLogs({ keys: published(SIGNER.keyId, '2026-03-01') })).toEqual([
    '2026-03-03 the signature of its log is of 2026-03-03, but its key was retired on 2026-03-01',
  ]);
  expect(ofLogs({ keys: published('other', null) })[0]).toBe(
    `2026-03-01 the signature of its log names ${SIGNER.keyId}, but other made it`,
  );
});

it('a rotated key still confirms what it signed', async () => {
  const next = new SeededSigner('next');
  const keys = [...TERMS.keys, trustedKey(next.publicKey)];
  await replaceLog('2026-03-03', (log) => log, next);
  expect(ofLogs({ keys })).toEqual([]);
  expect(ofLogs({ keys: keys.slice(1) })).toHaveLength(2);
});

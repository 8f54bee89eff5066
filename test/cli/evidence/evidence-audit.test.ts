import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { trustedKey } from '../../../lambdas/evidence/verify/trusted-keys.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import { SIGNER, sealedBundle } from '../../evidence/bundle/sealed-bundle.ts';
import { LoggedDays } from '../../evidence/daily-log/logged-days.ts';
import { SeededSigner } from '../../fakes/seeded-signer.ts';
import { temporaryFolder } from '../../local/cloud/wire.ts';
import { countersign, onTerminal } from '../command-line.ts';

/** A copy of a bucket: bundles, and three days of logs from their time on. */
const FIRST_DAY = '2026-01-02';
const LAST_DAY = '2026-01-04';

let folder: { path: string; remove(): void };
let key: string;

const at = (path: string) => join(folder.path, path);
const bundleAt = (runId: string, file = 'bundle.json') => at(`evidence/acme/${runId}/${file}`);

function write(path: string, content: Buffer | string): void {
  mkdirSync(dirname(at(path)), { recursive: true });
  writeFileSync(at(path), content);
}

beforeEach(async () => {
  folder = temporaryFolder();
  const days = new LoggedDays(`${FIRST_DAY}T10:00:00.000Z`);
  for (const runId of ['run_00000001', 'run_00000002', 'run_00000003']) {
    const { document, envelope } = await sealedBundle({ runId });
    await days.store.putOnce(`evidence/acme/${runId}/bundle.json`, document, 'application/json');
    await days.store.putOnce(`evidence/acme/${runId}/bundle.dsse.json`, envelope, 'application/json');
    await days.seal(runId);
  }
  days.goTo('2026-01-05T00:20:00.000Z');
  await days.list();
  days.goTo('2026-01-05T10:00:00.000Z');
  await days.close();
  for (const path of days.store.keys()) write(path, days.store.peek(path) ?? '');
  key = at('keys.pem');
  const others = new SeededSigner('next').publicKey.export({ type: 'spki', format: 'pem' });
  write('keys.pem', `${others}${SIGNER.publicKey.export({ type: 'spki', format: 'pem' })}`);
});
afterEach(() => folder.remove());

const audit = (...more: string[]) =>
  onTerminal(200, ['evidence', 'audit', folder.path, '--key', key, '--through', LAST_DAY, ...more]);

describe('countersign evidence audit', () => {
  it('exits with 0 for a complete copy of the bucket', async () => {
    expect(await audit()).toMatchObject({
      exitCode: 0,
      stdout: [
        'acme: nothing missing or changed (3 logs, 2026-01-02 to 2026-01-04; 3 bundles as sealed)',
        '1 tenant: acme. No --tenant was given: a tenant whose files were all deleted is not reported',
      ].join('\n'),
    });
  });

  it('exits with 1 if a named tenant is missing', async () => {
    const { exitCode, lines } = await audit('--tenant', 'acme', '--tenant', 'globex');
    expect(exitCode).toBe(1);
    expect(lines).toEqual([
      'acme: nothing missing or changed (3 logs, 2026-01-02 to 2026-01-04; 3 bundles as sealed)',
      'globex  has neither logs nor bundles here',
      'globex: 1 problem (no logs; 0 bundles as sealed)',
      '2 tenants: acme, globex',
    ]);
    rmSync(at('evidence'), { recursive: true });
    rmSync(at('log'), { recursive: true });
    expect(await audit('--tenant', 'acme')).toMatchObject({ exitCode: 1 });
  });

  it('rejects a signature made after the key was retired', async () => {
    const { algorithm, fingerprint } = trustedKey(SIGNER.publicKey);
    const pem = String(SIGNER.publicKey.export({ type: 'spki', format: 'pem' }));
    const retired = (validUntil: string | null) =>
      write('keys.pem', JSON.stringify({ keys: [{ keyId: SIGNER.keyId, validUntil, algorithm, fingerprint, pem }] }));
    retired('2026-01-03');
    expect(await audit()).toMatchObject({ exitCode: 0 });
    retired('2025-06-01');
    const { exitCode, lines } = await audit();
    expect(exitCode).toBe(1);
    expect(lines[0]).toBe(
      '2026-01-02  the signature of its log is of 2026-01-02, but its key was retired on 2025-06-01',
    );
    expect(lines[4]).toBe(
      'run_00000001  was tampered with: signature is of 2026-01-02, but its key was retired on 2025-06-01',
    );
  });

  it('exits with 1 and names a deleted bundle', async () => {
    rmSync(dirname(bundleAt('run_00000002')), { recursive: true });
    const args = ['evidence', 'audit', folder.path, '--key', key, '--through', LAST_DAY];
    const { exitCode, stdout, stderr } = await countersign(args);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: '' });
    expect(stdout.split('\n')[0]).toBe(
      'run_00000002  is deleted: entry 2 of 3 in the log of 2026-01-02, sealed 2026-01-02T10:00:00.000Z, has no bundle here',
    );
    expect(stdout).toContain('acme: 1 problem (');
  });

  it('reads the bundles of an object, and names one whose lines are missing', async () => {
    const lines: Buffer[] = [];
    for (const runId of ['run_00000002', 'run_00000003']) {
      const { document, envelope } = await sealedBundle({ runId });
      lines.push(Buffer.concat([document, Buffer.from('\n'), envelope, Buffer.from('\n')]));
      rmSync(dirname(bundleAt(runId)), { recursive: true });
    }
    const hash = sha256Hex(Buffer.concat(lines));
    const object = `evidence/acme/bundles/${FIRST_DAY}/${hash}.jsonl`;
    write(object, Buffer.concat(lines));
    expect(await audit()).toMatchObject({ exitCode: 0 });
    write(object, lines[0] ?? '');
    const { exitCode, lines: printed } = await audit();
    expect(exitCode).toBe(1);
    expect(printed.slice(0, 2)).toEqual([
      `${hash}  cannot be read: its name is not the SHA-256 of its content`,
      expect.stringMatching(/^run_00000003 {2}is deleted: /),
    ]);
  });

  it('expects the log of yesterday by default', async () => {
    const { exitCode, stdout } = await onTerminal(200, ['evidence', 'audit', folder.path, '--key', key]);
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^2026-01-05 {2}its log and all up to that of \d{4}-\d\d-\d\d are missing$/m);
  });

  it('names a modified bundle, and a bundle under a wrong name', async () => {
    writeFileSync(bundleAt('run_00000001'), '{}');
    for (const file of ['bundle.json', 'bundle.dsse.json']) {
      copyFileSync(bundleAt('run_00000003', file), bundleAt('run_00000002', file));
    }
    rmSync(bundleAt('run_00000003', 'bundle.dsse.json'));
    const { exitCode, lines } = await audit();
    expect(exitCode).toBe(1);
    expect(lines[0]).toMatch(/^run_00000001 {2}was tampered with: /);
    expect(lines.slice(1, 3)).toEqual([
      'run_00000002  is the bundle of acme/run_00000003 under another name',
      'run_00000003  is not signed: the envelope is missing',
    ]);
  });

  it('trusts no other key', async () => {
    write('keys.pem', String(new SeededSigner('next').publicKey.export({ type: 'spki', format: 'pem' })));
    const { exitCode, lines } = await audit();
    expect(exitCode).toBe(1);
    expect(lines[0]).toBe('2026-01-02  its log is not signed by that key');
  });

  it('prints the same as JSON', async () => {
    rmSync(bundleAt('run_00000002'));
    const { exitCode, stdout } = await audit('--json');
    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toEqual({
      tenants: [
        {
          tenant: 'acme',
          days: ['2026-01-02', '2026-01-03', '2026-01-04'],
          confirmed: 2,
          pending: [],
          open: [],
          findings: [{ about: 'run_00000002', problem: expect.stringContaining('is deleted') }],
        },
      ],
      changes: [],
    });
  });

  it.each<[string, () => string[], string]>([
    ['without a key', () => [folder.path], '--key is required'],
    ['with a missing key file', () => [folder.path, '--key', at('none.pem')], 'none.pem: it does not exist'],
    [
      'with a file that contains no key',
      () => [folder.path, '--key', bundleAt('run_00000001')],
      'contains no usable key',
    ],
    ['of a missing folder', () => [at('none'), '--key', key], 'none: it does not exist'],
    ['of a file', () => [key, '--key', key], 'keys.pem: it is not a folder'],
    [
      'over a folder that is called as a bundle is',
      () => {
        rmSync(bundleAt('run_00000001'));
        mkdirSync(bundleAt('run_00000001'));
        return [folder.path, '--key', key];
      },
      'bundle.json: it is a folder',
    ],
    ['of a folder without logs', () => [at('evidence'), '--key', key], 'contains no logs'],
    [
      'from no day',
      () => [folder.path, '--key', key, '--from', 'monday'],
      '--from must be a day, for example 2026-03-01',
    ],
  ])('%s exits with 2 and a message', async (_how, args, sentence) => {
    const { exitCode, stdout, stderr } = await onTerminal(100, ['evidence', 'audit', ...args()]);
    expect(stderr).toContain(sentence);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  });
});

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { daysLater } from '../../lambdas/evidence/daily-log/daily-log.ts';
import type { PublishedKey } from '../../lambdas/evidence/verify/trusted-keys.ts';
import { trustedKeys } from '../../lambdas/evidence/verify/trusted-keys.ts';
import { canonicalJson, sha256Hex } from '../../lambdas/run/canonical-json.ts';
import { onTerminal } from '../cli/command-line.ts';
import { temporaryFolder } from './cloud/wire.ts';
import { ACME_KEY, type ShownRun } from './harness/host-client.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

let host: TestHost;
let s3: S3Client;
let evidenceBucket: string;
let exportBucket: string;
let run: ShownRun;
const sealedRuns: string[] = [];

beforeAll(async () => {
  host = await startTestHost();
  s3 = new S3Client(host.clientConfig());
  evidenceBucket = host.only('AWS::S3::Bucket', 'EvidenceVaultBucket').ref;
  exportBucket = host.only('AWS::S3::Bucket', 'EvidenceVaultExportsBucket').ref;
  run = await host.waitForRun(await host.openIssue(41));
  sealedRuns.push(run.runId);
});
afterAll(async () => {
  s3.destroy();
  await host.stop();
});

async function keysIn(Bucket: string): Promise<string[]> {
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket }));
  return Contents.map(({ Key = '' }) => Key);
}

async function stored(Bucket: string, Key: string, Range?: string): Promise<Buffer> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key, Range }));
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
}

type Artifact = NonNullable<NonNullable<ShownRun['evidence']>['artifacts']>[number];

/** What a run refers to. */
const referred = ({ key, offset = 0, sizeBytes }: Artifact) =>
  stored(exportBucket, key, `bytes=${offset}-${offset + sizeBytes - 1}`);

async function artifact(name: Artifact['name']): Promise<Buffer> {
  const found = (await host.run(run.runId)).evidence?.artifacts?.find((each) => each.name === name);
  if (!found) throw new Error(`the run has no ${name}`);
  return referred(found);
}

const published = () => host.request<{ keys: PublishedKey[] }>('GET', '/.well-known/countersign-keys.json');

it('the keys are public at the URL in the stack outputs', async () => {
  const { status, body, headers } = await published();
  expect(status).toBe(200);
  expect(headers.get('cache-control')).toBe('public, max-age=3600');
  const keyArn = host.only('AWS::KMS::Key', 'EvidenceVaultSigningKey').arn;
  expect(body.keys).toMatchObject([{ keyId: keyArn, algorithm: 'Ed25519', validUntil: null }]);
  expect(trustedKeys(body.keys[0]?.pem ?? '')).toHaveLength(1);
  expect(host.stack.outputs).toMatchObject({
    KeysUrl: `${host.url}/.well-known/countersign-keys.json`,
    SigningKeyArn: keyArn,
  });
});

it('a finished run is exported for the SIEM, a line for each commit, without texts of people', async () => {
  const [siem = ''] = (await keysIn(exportBucket)).filter((key) => key.startsWith('siem/'));
  const endedOn = run.commits.at(-1)?.at.slice(0, 10) ?? '';
  expect(siem).toMatch(new RegExp(`^siem/acme/${endedOn.replaceAll('-', '/')}/[0-9a-f]{32}\\.jsonl$`));
  const text = (await stored(exportBucket, siem)).toString();
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.map(({ unmapped }) => unmapped.hash)).toEqual(run.commits.map(({ hash }) => hash));
  expect(text).not.toContain('Payments fail');
});

it('its artifacts contain the content of the hashes in the evidence', async () => {
  const enrichment = await artifact('enrichment');
  const events = run.commits.flatMap((commit) => commit.events);
  const enriched = events.find((event) => event.type === 'run.enriched');
  expect(sha256Hex(enrichment)).toBe(enriched?.enrichmentHash);
  const completion = JSON.parse((await artifact('completion')).toString());
  expect(completion).toMatchObject({ status: 'succeeded', runId: run.runId });
  const hashes = events.flatMap((event) => (event.type === 'step.succeeded' ? [event.outputHash] : []));
  const outputs = completion.steps.map(({ output }: { output: unknown }) => sha256Hex(canonicalJson(output)));
  expect(outputs.sort()).toEqual(hashes.sort());
});

it('6.10 the run refers to its artifacts with the digests of what is stored, and the API returns them', async () => {
  const { artifacts = [] } = (await host.run(run.runId)).evidence ?? {};
  expect(artifacts.map(({ name }) => name)).toEqual(['enrichment', 'completion', 'values']);
  for (const reference of artifacts) {
    const { name, sha256 } = reference;
    expect(sha256Hex(await referred(reference))).toBe(sha256);
    const { text } = await host.request('GET', `/api/v1/runs/${run.runId}/evidence/${name}.json`, {
      headers: { 'x-api-key': ACME_KEY },
    });
    expect(sha256Hex(text)).toBe(sha256);
  }
});

it('6.10 artifacts that cannot be stored delay neither SIEM lines nor the evidence, and their references follow', async () => {
  const put = { function: 'EvidenceVaultSeal', service: 's3', operation: 'PutObject' };
  await host.fault({ ...put, resource: 'artifacts/acme/', times: 'always', kind: 'error' });
  const runId = await host.openIssue(77);
  const sealed = await host.waitForRun(runId);
  const names = (shown: ShownRun) => shown.evidence?.artifacts?.map(({ name }) => name);
  expect(names(sealed)).toBeUndefined();
  expect((await keysIn(exportBucket)).filter((key) => key.startsWith(`artifacts/acme/${runId}/`))).toEqual([]);
  await host.clearFaults();
  await host.letTimePassUntil([runId], (shown) => names(shown)?.includes('enrichment') ?? false);
  const { artifacts = [], sha256 } = (await host.run(runId)).evidence ?? {};
  expect(artifacts.map(({ name }) => name)).toEqual(['enrichment', 'completion', 'values']);
  for (const each of artifacts) expect(sha256Hex(await referred(each))).toBe(each.sha256);
  // The bundle is the same.
  expect(sha256).toBe(sealed.evidence?.sha256);
  sealedRuns.push(runId);
});

it('its values are encrypted under a key of their own, and open the digests of the bundle', async () => {
  const Key = (await host.run(run.runId)).evidence?.artifacts?.find(({ name }) => name === 'values')?.key;
  const { ServerSideEncryption, SSEKMSKeyId } = await s3.send(new GetObjectCommand({ Bucket: exportBucket, Key }));
  const valuesKey = host.only('AWS::KMS::Key', 'EvidenceVaultExportsValuesKey').arn;
  expect([ServerSideEncryption, SSEKMSKeyId]).toEqual(['aws:kms', valuesKey]);
  expect(valuesKey).not.toBe(host.only('AWS::KMS::Key', 'EvidenceVaultSigningKey').arn);
  // A function without the right to use the key cannot read them, even if it may read the bucket.
  const reader = host.only('AWS::Lambda::Function', 'ApiRuns').logicalId;
  const asReader = new S3Client(host.clientConfig({ accessKeyId: `LOCAL${reader}.1`, secretAccessKey: 'local' }));
  await expect(asReader.send(new GetObjectCommand({ Bucket: exportBucket, Key }))).rejects.toMatchObject({
    name: 'AccessDenied',
  });
  asReader.destroy();

  const folder = temporaryFolder();
  try {
    const file = join(folder.path, 'bundle.json');
    const keys = join(folder.path, 'keys.json');
    writeFileSync(keys, JSON.stringify((await published()).body));
    const auditor = ['--url', host.url, '--key', 'local-auditor-key'];
    const get = await onTerminal(200, ['evidence', 'get', run.runId, '--values', '--out', file, ...auditor]);
    expect(get.lines.at(-1)).toBe(join(folder.path, 'bundle.values.json'));
    expect(statSync(join(folder.path, 'bundle.values.json')).mode & 0o077).toBe(0);
    const open = () => onTerminal(200, ['evidence', 'open', file, '--key', keys]);
    const opened = await open();
    expect(opened).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('Payments fail') });
    expect(opened.lines.at(-1)).toMatch(/^\d+ values as in the bundle$/);
    const values = readFileSync(join(folder.path, 'bundle.values.json'), 'utf8');
    writeFileSync(join(folder.path, 'bundle.values.json'), values.replaceAll('Payments fail', 'Payments work'));
    expect(await open()).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('trigger.payload  is not the value in the bundle'),
    });
    writeFileSync(join(folder.path, 'bundle.values.json'), '{}');
    expect(await open()).toMatchObject({ exitCode: 2 });
  } finally {
    folder.remove();
  }
});

it('failed exports do not delay evidence, and are repeated', async () => {
  // The bundle is the first object that a sealer puts.
  await host.fault({
    function: 'EvidenceVaultSeal',
    service: 's3',
    operation: 'PutObject',
    nth: 2,
    times: 'always',
    kind: 'error',
  });
  const sealed = await host.waitForRun(await host.openIssue(1));
  expect(sealed.evidence).not.toBeNull();
  sealedRuns.push(sealed.runId);
  await host.idle();
  const isExported = async () => (await keysIn(exportBucket)).filter((key) => key.includes(sealed.runId)).length;
  expect(await isExported()).toBe(0);
  await host.clearFaults();
  await host.advance(31_000);
  await host.sweep();
  await host.idle();
  expect(await isExported()).toBe(2);
  expect((await host.run(sealed.runId)).evidence).toMatchObject(sealed.evidence ?? {});
});

/** Copies the evidence bucket and the published keys, and returns the path of the keys. */
const copyEvidence = async (folder: string): Promise<string> => {
  for (const key of await keysIn(evidenceBucket)) {
    mkdirSync(dirname(join(folder, key)), { recursive: true });
    writeFileSync(join(folder, key), await stored(evidenceBucket, key));
  }
  const keys = join(folder, 'keys.json');
  writeFileSync(keys, JSON.stringify((await published()).body));
  return keys;
};

it('the bundles of each day are logged and signed, and an audit of the bucket finds deleted bundles', async () => {
  const sealedOn = run.evidence?.sealedAt.slice(0, 10) ?? '';
  await host.advance(3 * DAY_MS);
  await host.sweep();
  const copy = temporaryFolder();
  try {
    const keys = await copyEvidence(copy.path);
    const through = daysLater(sealedOn, 1);
    const terms = ['--key', keys, '--through', through, '--tenant', 'acme', '--tenant', 'globex'];
    const audit = () => onTerminal(200, ['evidence', 'audit', copy.path, ...terms]);

    const whole = await audit();
    expect(whole).toMatchObject({ exitCode: 0 });
    expect(whole.lines).toEqual([
      expect.stringMatching(/^acme: nothing missing or changed \(\d logs?, .*; 3 bundles as sealed\)$/),
      expect.stringMatching(/^globex: nothing missing or changed \(\d logs?, .*; 0 bundles as sealed\)$/),
      expect.stringMatching(/^initech: nothing missing or changed \(\d logs?, .*; 0 bundles as sealed\)$/),
      '3 tenants: acme, globex, initech',
      expect.stringMatching(/^acme, changes of definitions: nothing missing or changed \(/),
      expect.stringMatching(/^globex, changes of definitions: nothing missing or changed \(/),
      expect.stringMatching(/^initech, changes of definitions: nothing missing or changed \(.*; 0 changes\)$/),
    ]);
    const lists = readdirSync(join(copy.path, 'log', 'acme', 'accepted')).filter((name) => /\d\.json$/.test(name));
    const accepted = lists.flatMap((name) => {
      const list = JSON.parse(readFileSync(join(copy.path, 'log', 'acme', 'accepted', name), 'utf8'));
      return list.accepted.map(({ runId }: { runId: string }) => runId);
    });
    expect(accepted.toSorted()).toEqual(sealedRuns.toSorted());

    rmSync(join(copy.path, run.evidence?.documentKey ?? ''));
    const cut = await audit();
    expect(cut.exitCode).toBe(1);
    expect(cut.lines[0]).toMatch(`${run.runId}  is deleted: entry 1 of `);
    expect(cut.lines[0]).toContain(`in the log of ${sealedOn}`);

    for (const file of [`${sealedOn}.json`, `${sealedOn}.dsse.json`]) rmSync(join(copy.path, 'log', 'acme', file));
    rmSync(join(copy.path, 'log', 'acme', 'accepted', lists[0] ?? ''));
    const withoutDay = await audit();
    expect(withoutDay.exitCode).toBe(1);
    expect(withoutDay.stdout).toContain(`${sealedOn}  its log`);
    expect(withoutDay.stdout).toMatch(/follows the list of accepted runs of .*, which is missing with all before it/);
  } finally {
    copy.remove();
  }
});

it('a run whose bundle is withheld is named by the audit a day after its deadline', async () => {
  const sealing = { function: 'EvidenceVaultSeal', service: 's3', operation: 'PutObject', nth: 1 } as const;
  await host.fault({ ...sealing, times: 'always', kind: 'error' });
  const runId = await host.openIssue(2);
  await host.idle();
  await host.advance(HOUR_MS + 20 * 60_000);
  await host.sweep();
  await host.advance(2 * DAY_MS);
  await host.sweep();
  const copy = temporaryFolder();
  try {
    const keys = await copyEvidence(copy.path);
    const { createdAt } = await host.run(runId);
    const terms = ['--key', keys, '--through', daysLater(createdAt.slice(0, 10), 1), '--tenant', 'acme'];
    const { exitCode, stdout } = await onTerminal(200, ['evidence', 'audit', copy.path, ...terms]);
    expect(exitCode).toBe(1);
    expect(stdout).toContain(
      `${runId}  was accepted ${createdAt} and is not sealed, more than a day after its deadline`,
    );
  } finally {
    copy.remove();
    await host.clearFaults();
  }
});

it('the locked file of changes has nothing personal; the exported values match its digests, and an edited value does not', async () => {
  // The file of the day of the first start, which created the people. Around midnight another file may be before it.
  const files = (await keysIn(evidenceBucket)).filter((each) => /^log\/acme\/changes\/[\d-]+\.json$/.test(each));
  const texts = await Promise.all(files.map(async (each) => (await stored(evidenceBucket, each)).toString()));
  const locked = texts.toSorted((a, b) => b.length - a.length)[0] ?? '';
  const key = files[texts.indexOf(locked)] ?? '';
  for (const personal of ['Olivia', 'olivia', 'slack:', 'github:']) expect(locked).not.toContain(personal);

  const folder = temporaryFolder();
  try {
    const day = key.slice(-'2026-01-01.json'.length, -'.json'.length);
    const file = join(folder.path, 'changes.json');
    const keys = join(folder.path, 'keys.json');
    writeFileSync(keys, JSON.stringify((await published()).body));
    const auditor = ['--url', host.url, '--key', 'local-auditor-key'];
    expect(await onTerminal(200, ['changes', 'export', day, '--out', file, ...auditor])).toMatchObject({ exitCode: 0 });
    const verify = () => onTerminal(200, ['evidence', 'verify', file, '--key', keys]);
    const size = JSON.parse(locked).changes.length;
    expect((await verify()).lines).toEqual([
      `valid: acme, ${size} changes of ${day}`,
      `  values    ${size} changes as signed`,
    ]);
    const values = readFileSync(join(folder.path, 'changes.values.json'), 'utf8');
    expect(values).toContain('github:ana');
    writeFileSync(join(folder.path, 'changes.values.json'), values.replace('github:ana', 'github:eve'));
    expect(await verify()).toMatchObject({
      exitCode: 1,
      stdout: expect.stringContaining('not those that were signed'),
    });

    const { changeId } = JSON.parse(values).changes.find(({ name }: { name: string }) => name === 'ana');
    const erase = ['changes', 'erase', changeId, '--tenant', 'acme', '--reason', 'left the company', '--url', host.url];
    expect((await onTerminal(200, erase)).lines).toEqual([`erased ${changeId}`]);
    await onTerminal(200, ['changes', 'export', day, '--out', file, ...auditor]);
    expect((await verify()).lines[1]).toBe(`  values    ${size - 1} changes as signed; 1 deleted, or without a digest`);
    expect(readFileSync(join(folder.path, 'changes.values.json'), 'utf8')).not.toContain('github:ana');
  } finally {
    folder.remove();
  }
});

it('the function that closes days can delete neither logs nor evidence', async () => {
  const closer = host.only('AWS::Lambda::Function', 'EvidenceLogCloseDays').logicalId;
  const asCloser = new S3Client(host.clientConfig({ accessKeyId: `LOCAL${closer}.1`, secretAccessKey: 'local' }));
  const keys = await keysIn(evidenceBucket);
  for (const prefix of ['log/', 'evidence/']) {
    const Key = keys.find((key) => key.startsWith(prefix));
    const refused = asCloser.send(new DeleteObjectCommand({ Bucket: evidenceBucket, Key }));
    await expect(refused).rejects.toMatchObject({ name: 'AccessDenied' });
  }
  asCloser.destroy();
});

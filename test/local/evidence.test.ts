import { createHash, createPublicKey } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetPublicKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemPause } from '../../lambdas/entry/system.ts';
import { documentPlace, envelopePlace } from '../../lambdas/evidence/bundle/bundle-object.ts';
import type { ObjectPart } from '../../lambdas/evidence/evidence-store.ts';
import { trustedKey } from '../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../lambdas/evidence/verify/verify-bundle.ts';
import { DynamoRunStore } from '../../lambdas/run/dynamo/dynamo-run-store.ts';
import { RunDraft } from '../../lambdas/run/run-draft.ts';
import type { EvidenceRecord } from '../../lambdas/run/run-store.ts';
import { onTerminal, piped } from '../cli/command-line.ts';
import { assertChain } from '../fakes/assert-chain.ts';
import { incident } from './harness/deliveries.ts';
import { ACME_KEY, APPROVER_KEY, GLOBEX_KEY, type ShownRun } from './harness/host-client.ts';
import { startTestHost, type TestHost } from './harness/test-host.ts';

let host: TestHost;
let run: ShownRun;
let evidence: EvidenceRecord;
let Bucket: string;
let asHost: S3Client;
/** With the access key of the function that seals. */
let asSealer: S3Client;

beforeAll(async () => {
  host = await startTestHost();
  const runId = await host.fileIncident(incident('with evidence'));
  await host.approve(runId);
  run = await host.waitForRun(runId);
  if (!run.evidence) throw new Error('the run was not sealed');
  evidence = run.evidence;
  Bucket = host.only('AWS::S3::Bucket', 'EvidenceVaultBucket').ref;
  asHost = new S3Client(host.clientConfig());
  const sealer = host.only('AWS::Lambda::Function', 'EvidenceVaultSeal').logicalId;
  asSealer = new S3Client(host.clientConfig({ accessKeyId: `LOCAL${sealer}.1`, secretAccessKey: 'local' }));
});
afterAll(() => host.stop());

async function stored(Key: string, part?: ObjectPart): Promise<Buffer> {
  const Range = part && `bytes=${part.offset}-${part.offset + part.sizeBytes - 1}`;
  const { Body } = await asHost.send(new GetObjectCommand({ Bucket, Key, Range }));
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
}

it('the run names the bundle in the bucket, which contains its whole chain', async () => {
  const document = await stored(...documentPlace(evidence));
  expect(document.length).toBe(evidence.sizeBytes);
  expect(createHash('sha256').update(document).digest('hex')).toBe(evidence.sha256);
  const bundle = JSON.parse(document.toString());
  expect(bundle.commits).toEqual(run.commits);
  expect(bundle.head).toEqual({ hash: run.head.hash, count: run.head.seq });
  assertChain({ tenant: 'acme', runId: run.runId, seq: bundle.head.count, headHash: bundle.head.hash }, bundle.commits);
});

it('the bundle contains no texts of people, only their hashes', async () => {
  const document = (await stored(...documentPlace(evidence))).toString();
  expect(document).not.toContain('is slow');
  expect(document).not.toContain('Routed to');
});

it('the bundle verifies with the public key of the stage', async () => {
  const kms = new KMSClient(host.clientConfig());
  const { PublicKey } = await kms.send(
    new GetPublicKeyCommand({ KeyId: host.only('AWS::KMS::Key', 'EvidenceVaultSigningKey').arn }),
  );
  kms.destroy();
  const key = createPublicKey({ key: Buffer.from(PublicKey ?? []), format: 'der', type: 'spki' });
  const [document, envelope] = [await stored(...documentPlace(evidence)), await stored(...envelopePlace(evidence))];
  expect(verifyBundle({ document, envelope, keys: [trustedKey(key)] })).toMatchObject({
    verdict: 'valid',
    summary: { runId: run.runId, sha256: evidence.sha256, head: run.head.hash, commits: run.head.seq, approvals: 1 },
    signedBy: { algorithm: 'Ed25519' },
  });
});

it('an auditor downloads the bundle and the published keys, and verifies it offline', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-audit-'));
  const [bundle, keys] = [join(folder, 'bundle.json'), join(folder, 'keys.json')];
  const got = await piped(['evidence', 'get', run.runId, '--out', bundle, '--url', host.url]);
  expect(got).toMatchObject({ exitCode: 0, stderr: '' });
  writeFileSync(keys, await (await fetch(`${host.url}/.well-known/countersign-keys.json`)).text());
  const verified = await onTerminal(200, ['evidence', 'verify', bundle, '--key', keys, '--url', 'http://127.0.0.1:1']);
  expect(verified.stdout).toMatch(new RegExp(`^valid: acme/${run.runId}, succeeded`));
  expect(verified.exitCode).toBe(0);
  rmSync(folder, { recursive: true });
});

it('nobody else gets it: a run of another tenant, an unfinished run and a missing run have the same response', async () => {
  const path = `/api/v1/runs/${run.runId}/evidence`;
  const status = async (key: string, file = '') =>
    (await fetch(`${host.url}${path}${file}`, { headers: { 'x-api-key': key } })).status;
  expect([await status(ACME_KEY), await status(ACME_KEY, '/bundle.json')]).toEqual([200, 200]);
  expect([await status(GLOBEX_KEY), await status(GLOBEX_KEY, '/bundle.json')]).toEqual([404, 404]);
  expect(await status('made-up', '/bundle.json')).toBe(401);
});

it('the sealer can neither delete evidence nor overwrite it', async () => {
  const Key = evidence.documentKey;
  const { VersionId } = await asHost.send(new HeadObjectCommand({ Bucket, Key }));
  const before = await stored(Key);
  const refusal = {
    name: 'AccessDenied',
    message: expect.stringMatching(
      /is not authorized to perform s3:DeleteObject on .*: no statement of its role grants it/,
    ),
  };
  await expect(asSealer.send(new DeleteObjectCommand({ Bucket, Key }))).rejects.toMatchObject(refusal);
  await expect(asSealer.send(new DeleteObjectCommand({ Bucket, Key, VersionId }))).rejects.toMatchObject({
    name: 'AccessDenied',
  });
  const again = new PutObjectCommand({ Bucket, Key, Body: '{}', IfNoneMatch: '*', ChecksumAlgorithm: 'SHA256' });
  await expect(asSealer.send(again)).rejects.toMatchObject({ name: 'PreconditionFailed' });
  // The bucket policy requires If-None-Match from every caller, also from the host, which has no role.
  for (const client of [asSealer, asHost]) {
    const unasked = new PutObjectCommand({ Bucket, Key, Body: '{}', ChecksumAlgorithm: 'SHA256' });
    await expect(client.send(unasked)).rejects.toMatchObject({
      name: 'AccessDenied',
      message: expect.stringMatching(/the bucket policy denies s3:PutObject/),
    });
  }
  expect(await stored(Key)).toEqual(before);
});

it('Object Lock protects a sealed version also from a caller who may delete objects', async () => {
  const Key = evidence.documentKey;
  const { VersionId, ObjectLockMode, ObjectLockRetainUntilDate } = await asHost.send(
    new HeadObjectCommand({ Bucket, Key }),
  );
  expect(ObjectLockMode).toBe('GOVERNANCE');
  expect(ObjectLockRetainUntilDate?.getTime()).toBeGreaterThan(await host.now());
  await expect(asHost.send(new DeleteObjectCommand({ Bucket, Key, VersionId }))).rejects.toMatchObject({
    name: 'AccessDenied',
  });
});

it('a finished run is counted by its result, and the sweeper shows what is due and what waits', async () => {
  await host.sweep();
  const { body } = await host.request<{
    metrics: { name: string; namespace: string; dimensions: object; sum: number; count: number }[];
  }>('GET', '/_local/metrics');
  expect(body.metrics).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        namespace: 'Countersign/local',
        name: 'gwi_run_duration_seconds',
        dimensions: { status: 'succeeded' },
        count: 1,
      }),
      expect.objectContaining({ name: 'OldestDueSeconds', dimensions: {} }),
      expect.objectContaining({ name: 'ApprovalsWaiting', dimensions: {}, sum: 0 }),
    ]),
  );
});

it('the policies and the workflow of a bundle are stored under their hashes, and the decisions can be made again', async () => {
  const document = JSON.parse((await stored(...documentPlace(evidence))).toString());
  const hashes: string[] = [...document.versions.policies];
  const enriched = run.commits.flatMap(({ events }) => events).find(({ type }) => type === 'run.enriched');
  hashes.push(String((enriched as { workflowHash?: string }).workflowHash));
  for (const hash of hashes) {
    const Key = `texts/acme/${hash}`;
    expect(
      createHash('sha256')
        .update(await stored(Key))
        .digest('hex'),
    ).toBe(hash);
    const { ObjectLockRetainUntilDate: until } = await asHost.send(new HeadObjectCommand({ Bucket, Key }));
    expect(until?.getTime()).toBeGreaterThan(await host.now());
    const read = (key: string) => host.request('GET', `/api/v1/texts/${hash}`, { headers: { 'x-api-key': key } });
    expect([(await read(ACME_KEY)).status, hash]).toEqual([200, hash]);
  }
  const unknown = await host.request('GET', `/api/v1/texts/${'0'.repeat(64)}`, { headers: { 'x-api-key': ACME_KEY } });
  expect(unknown.status).toBe(404);
  // The workflow of another tenant.
  const path = `/api/v1/texts/${hashes.at(-1)}`;
  expect((await host.request('GET', path, { headers: { 'x-api-key': GLOBEX_KEY } })).status).toBe(404);

  const folder = mkdtempSync(join(tmpdir(), 'countersign-texts-'));
  try {
    const bundle = join(folder, 'b.json');
    const [keys, texts] = [join(folder, 'keys.json'), join(folder, 'b.texts')];
    const got = await piped(['evidence', 'get', run.runId, '--out', bundle, '--values', '--texts', '--url', host.url]);
    expect(got.exitCode).toBe(0);
    expect(readdirSync(texts).sort()).toEqual([...hashes].sort());
    writeFileSync(keys, await (await fetch(`${host.url}/.well-known/countersign-keys.json`)).text());
    const verify = () => onTerminal(200, ['evidence', 'verify', bundle, '--key', keys, '--with-texts', texts]);
    const decided = new Set(document.decisions.map(({ index }: { index: number }) => index)).size;
    const again = await verify();
    expect(again.lines.slice(-1)[0]).toMatch(
      new RegExp(`policies  ${decided} decisions? made again, with the same result`),
    );
    expect(again.exitCode).toBe(0);

    // Another request than the decided one.
    const file = join(folder, 'b.values.json');
    const values = readFileSync(file, 'utf8');
    const changed = JSON.parse(values);
    const step = changed.steps.find(({ action }: { action?: object }) => action);
    step.action.fields = { ...step.action.fields, urgency: '9' };
    // The second value is a number beyond the range of a double.
    for (const text of [JSON.stringify(changed), JSON.stringify(changed).replace('"urgency":"9"', '"urgency":1e400')]) {
      writeFileSync(file, text);
      expect(await verify()).toMatchObject({
        exitCode: 1,
        stdout: expect.stringContaining('not the one on which policy decided'),
      });
    }
    // A text that was changed, then one that is missing.
    writeFileSync(file, values);
    const policyFile = join(texts, hashes[0] ?? '');
    const text = readFileSync(policyFile, 'utf8');
    writeFileSync(policyFile, text.replace('permit', 'forbid'));
    expect(await verify()).toMatchObject({ exitCode: 2 });
    rmSync(policyFile);
    expect(await verify()).toMatchObject({ exitCode: 2, stdout: expect.stringContaining('there is no text') });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** A commit says that a person stopped the run, and the worker does not know: its next write breaks rule 14. */
async function recordUnnoticedStop(runId: string): Promise<void> {
  const dynamo = new DynamoDBClient(host.clientConfig());
  const now = await host.now();
  const runs = new DynamoRunStore(dynamo, host.tableName, systemPause, { now: () => now });
  const loaded = await runs.load('acme', runId);
  if (!loaded) throw new Error('there is no such run');
  const steps = new Map(loaded.steps.map((step) => [step.index, step]));
  const draft = new RunDraft({ run: loaded.run, steps }, new Date(now).toISOString());
  draft.record({ type: 'run.stop_requested', kind: 'pause', initiator: 'user', actor: 'olivia' });
  await runs.commit(draft.seal());
  dynamo.destroy();
}

it('a run that broke a rule is sealed only after an owner accepted it, and then says so', async () => {
  const runId = await host.fileIncident(incident('with a broken rule'));
  await host.waitForRun(runId, ({ status }) => status === 'waiting_approval');
  await recordUnnoticedStop(runId);
  await host.approve(runId);
  await host.waitForRun(runId, ({ status }) => status === 'succeeded');
  await host.idle();
  expect(host.log.join()).toContain('broke rule 14 (nothing-starts-after-a-stop)');
  expect((await host.run(runId)).evidence).toBeNull();

  const acceptance = { rules: [14], reason: 'the worker was defective; the write was wanted' };
  const path = `/runs/${runId}/accept-broken-rules`;
  expect((await host.command(path, acceptance, APPROVER_KEY)).status).toBe(403);
  expect((await host.command(path, acceptance, GLOBEX_KEY)).status).toBe(404);
  expect((await host.run(runId)).evidence).toBeNull();
  expect((await host.command(path, acceptance)).status).toBe(200);
  await host.advance(61_000);
  await host.sweep();
  await host.waitForRun(runId);

  const folder = mkdtempSync(join(tmpdir(), 'countersign-broken-'));
  try {
    const [bundle, keys] = [join(folder, 'bundle.json'), join(folder, 'keys.json')];
    await piped(['evidence', 'get', runId, '--out', bundle, '--url', host.url]);
    writeFileSync(keys, await (await fetch(`${host.url}/.well-known/countersign-keys.json`)).text());
    const { exitCode, stdout } = await onTerminal(200, ['evidence', 'verify', bundle, '--key', keys]);
    expect(exitCode).toBe(3);
    expect(stdout).toContain('nothing-starts-after-a-stop');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

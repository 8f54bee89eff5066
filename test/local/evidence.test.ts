import { createHash, createPublicKey, verify } from 'node:crypto';
import { GetPublicKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { preAuthEncoding } from '../../lambdas/evidence/bundle.ts';
import { assertChain } from '../../lambdas/run/commit.ts';
import type { EvidenceRecord } from '../../lambdas/run/run-store.ts';
import { incident } from './deliveries.ts';
import type { ShownRun } from './host-client.ts';
import { startTestHost, type TestHost } from './test-host.ts';

let host: TestHost;
let run: ShownRun;
let evidence: EvidenceRecord;
let Bucket: string;
let asHost: S3Client;
/** With the access key of the function that seals. */
let asSealer: S3Client;

beforeAll(async () => {
  host = await startTestHost();
  run = await host.waitForRun(await host.fileIncident(incident('with evidence')));
  if (!run.evidence) throw new Error('the run was not sealed');
  evidence = run.evidence;
  Bucket = host.only('AWS::S3::Bucket', 'EvidenceVaultBucket').ref;
  asHost = new S3Client(host.clientConfig());
  const sealer = host.only('AWS::Lambda::Function', 'EvidenceVaultSeal').logicalId;
  asSealer = new S3Client(host.clientConfig({ accessKeyId: `LOCAL${sealer}.1`, secretAccessKey: 'local' }));
});
afterAll(() => host.stop());

async function stored(Key: string): Promise<Buffer> {
  const { Body } = await asHost.send(new GetObjectCommand({ Bucket, Key }));
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
}

it('the bundle in the bucket is the one the run names, and holds its whole chain', async () => {
  const document = await stored(evidence.documentKey);
  expect(document.length).toBe(evidence.sizeBytes);
  expect(createHash('sha256').update(document).digest('hex')).toBe(evidence.sha256);
  const bundle = JSON.parse(document.toString());
  expect(bundle.commits).toEqual(run.commits);
  expect(bundle.head).toEqual({ hash: run.head.hash, count: run.head.seq });
  assertChain({ tenant: 'acme', runId: run.runId, seq: bundle.head.count, headHash: bundle.head.hash }, bundle.commits);
});

it('the bundle holds no text that people wrote, only what identifies it', async () => {
  const document = (await stored(evidence.documentKey)).toString();
  expect(document).not.toContain('is slow');
  expect(document).not.toContain('Routed to');
});

it('the envelope is signed by the key of the stage, over the bundle and the end of its chain', async () => {
  const envelope = JSON.parse((await stored(evidence.envelopeKey)).toString());
  const kms = new KMSClient(host.clientConfig());
  const KeyId = host.only('AWS::KMS::Key').arn;
  const { PublicKey } = await kms.send(new GetPublicKeyCommand({ KeyId }));
  kms.destroy();
  const key = createPublicKey({ key: Buffer.from(PublicKey ?? []), format: 'der', type: 'spki' });
  const payload = Buffer.from(envelope.payload, 'base64');
  const signature = Buffer.from(envelope.signatures[0].sig, 'base64');
  const signed = (bytes: Buffer) => verify(null, preAuthEncoding(envelope.payloadType, bytes), key, signature);
  expect(signed(payload)).toBe(true);
  expect(signed(Buffer.from(payload.toString().replace('succeeded', 'Succeeded')))).toBe(false);
  expect(JSON.parse(payload.toString())).toMatchObject({
    subject: [{ name: `acme/${run.runId}`, digest: { sha256: evidence.sha256 } }],
    predicate: { head: run.head.hash, count: run.head.seq, status: 'succeeded' },
  });
});

it('whoever seals can neither delete evidence nor write it again', async () => {
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
  expect(await stored(Key)).toEqual(before);
});

it('Object Lock keeps a sealed version even from who may delete objects', async () => {
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

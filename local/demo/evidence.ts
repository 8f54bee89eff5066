import { createPublicKey, verify } from 'node:crypto';
import { GetPublicKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { RunDetail } from '../../bin/commands/api.ts';
import { preAuthEncoding } from '../../lambdas/evidence/bundle.ts';
import { sha256Hex } from '../../lambdas/run/canonical-json.ts';
import { assertChain, type Commit } from '../../lambdas/run/commit.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';
import { REGION } from '../aws.ts';
import { HOST_CREDENTIALS } from '../gateway.ts';
import type { Host } from '../host.ts';

const BUCKET_OUTPUT = 'EvidenceVaultBucketName';

interface Envelope {
  payloadType: string;
  payload: string;
  signatures: { keyid: string; sig: string }[];
}

/** What an auditor holds in hand: the document, its hash, and whether the signature over both is the stage's own. */
export interface HeldEvidence {
  sha256: string;
  commits: Commit[];
  signedSha256: string;
  signedHead: string;
  signatureHolds: boolean;
}

/** Reads a run's bundle from the bucket and checks its signature with the public key, through the host's AWS services. */
export async function readEvidence(host: Host, { evidence }: RunDetail): Promise<HeldEvidence> {
  if (!evidence) throw new Error('the run has no evidence');
  const config = { endpoint: host.gatewayUrl, region: REGION, credentials: HOST_CREDENTIALS, forcePathStyle: true };
  const s3 = new S3Client(config);
  const kms = new KMSClient(config);
  try {
    const document = await readObject(s3, host, evidence.documentKey);
    const envelope: Envelope = JSON.parse((await readObject(s3, host, evidence.envelopeKey)).toString());
    const payload = Buffer.from(envelope.payload, 'base64');
    const statement = JSON.parse(payload.toString());
    return {
      sha256: sha256Hex(document),
      commits: JSON.parse(document.toString()).commits,
      signedSha256: statement.subject[0].digest.sha256,
      signedHead: statement.predicate.head,
      signatureHolds: await isSigned(kms, envelope, payload),
    };
  } finally {
    s3.destroy();
    kms.destroy();
  }
}

async function readObject(s3: S3Client, host: Host, key: string): Promise<Buffer> {
  const [, bucket] = Object.entries(host.stack.outputs).find(([name]) => name.startsWith(BUCKET_OUTPUT)) ?? [];
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: String(bucket), Key: key }));
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
}

async function isSigned(kms: KMSClient, { payloadType, signatures }: Envelope, payload: Buffer): Promise<boolean> {
  const [signature] = signatures;
  if (!signature) return false;
  const { PublicKey = new Uint8Array() } = await kms.send(new GetPublicKeyCommand({ KeyId: signature.keyid }));
  const key = createPublicKey({ key: Buffer.from(PublicKey), format: 'der', type: 'spki' });
  const algorithm = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  return verify(algorithm, preAuthEncoding(payloadType, payload), key, Buffer.from(signature.sig, 'base64'));
}

/** Empty if the commits are whole, in order and unedited; else what is wrong with them. */
export function flawOf({ runId, head }: RunDetail, commits: readonly Commit[]): string {
  try {
    assertChain({ tenant: 'acme', runId, seq: head.seq, headHash: head.hash }, commits);
    return '';
  } catch (error) {
    if (error instanceof CountersignError) return error.message;
    throw error;
  }
}

import * as z from 'zod';
import { canonicalJson } from '../../run/canonical-json.ts';
import { Sha256 } from '../../run/digest.ts';
import { CountersignError } from '../../run/errors.ts';
import { auditPath, leafHash, merkleRoot } from '../daily-log/merkle.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import type { TrustedKey } from '../verify/trusted-keys.ts';

export const PAYLOAD_TYPE = 'application/vnd.in-toto+json';

/** Rejects spare bits in the last character, so that each value has one form. */
const Base64 = z
  .string()
  .refine((text) => Buffer.from(text, 'base64').toString('base64') === text, 'is not canonical base64');

/** More siblings than any batch has. */
const PATH_MAX = 32;

export const Envelope = z.strictObject({
  /** Of a statement that was signed together with others: the signed statement about all of them, and where this one is. */
  batch: z
    .strictObject({ index: z.int().nonnegative(), path: z.array(Sha256).max(PATH_MAX), payload: Base64 })
    .optional(),
  payload: Base64,
  payloadType: z.literal(PAYLOAD_TYPE),
  signatures: z.tuple([z.strictObject({ keyid: z.string(), sig: Base64 })]),
});

/** An in-toto statement about the document with this digest. It names its key, because DSSE does not sign `keyid`. */
export const Statement = z.strictObject({
  _type: z.literal('https://in-toto.io/Statement/v1'),
  subject: z.tuple([z.strictObject({ name: z.string(), digest: z.strictObject({ sha256: z.string() }) })]),
  predicateType: z.string(),
  predicate: z.looseObject({ keyId: z.string() }),
});
export type Statement = z.infer<typeof Statement>;

/** The facts to sign. KMS signs at most 4,096 bytes. */
export interface Claim {
  subject: string;
  sha256: string;
  predicateType: string;
  predicate: Record<string, unknown>;
}

type SigningKey = Pick<Signer, 'keyId' | 'sign'>;

/** Returns a DSSE envelope with the statement of a claim. */
export async function signClaim(claim: Claim, signer: SigningKey): Promise<Buffer> {
  const payload = payloadOf(claim, signer);
  return envelopeOf(payload, await signed(payload, signer));
}

/** The statement of a batch: its subject is the Merkle root over the statements that were signed together. */
export const BATCH_PREDICATE_TYPE = 'https://countersign.dev/evidence-batch/v1';
export const BatchPredicate = z.strictObject({ size: z.int().min(2), keyId: z.string() });
export const BATCH_SUBJECT = 'batch';

/**
 * Signs several claims with one signature, and returns an envelope for each, which can be verified without the others. A single
 * claim is signed as `signClaim` does it.
 */
export async function signClaims(claims: readonly Claim[], signer: SigningKey): Promise<Buffer[]> {
  const [first] = claims;
  if (first && claims.length === 1) return [await signClaim(first, signer)];
  const payloads = claims.map((claim) => payloadOf(claim, signer));
  const leaves = payloads.map(leafHash);
  const batch = payloadOf(
    {
      subject: BATCH_SUBJECT,
      sha256: merkleRoot(leaves).toString('hex'),
      predicateType: BATCH_PREDICATE_TYPE,
      predicate: { size: claims.length },
    },
    signer,
  );
  const signatures = await signed(batch, signer);
  return payloads.map((payload, index) => {
    const path = auditPath(leaves, index).map((sibling) => sibling.toString('hex'));
    return envelopeOf(payload, signatures, { index, path, payload: batch.toString('base64') });
  });
}

function payloadOf({ subject, sha256, predicateType, predicate }: Claim, { keyId }: SigningKey): Buffer {
  const statement: Statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: subject, digest: { sha256 } }],
    predicateType,
    predicate: { ...predicate, keyId },
  };
  return Buffer.from(canonicalJson(statement));
}

type Signatures = z.infer<typeof Envelope>['signatures'];

async function signed(payload: Buffer, signer: SigningKey): Promise<Signatures> {
  const { keyId, signature } = await signer.sign(preAuthEncoding(PAYLOAD_TYPE, payload));
  return [{ keyid: keyId, sig: signature.toString('base64') }];
}

function envelopeOf(payload: Buffer, signatures: Signatures, batch?: z.infer<typeof Envelope>['batch']): Buffer {
  const envelope: z.infer<typeof Envelope> = {
    ...(batch && { batch }),
    payload: payload.toString('base64'),
    payloadType: PAYLOAD_TYPE,
    signatures,
  };
  return Buffer.from(canonicalJson(envelope));
}

/** DSSE signs type and body with their lengths, so that they cannot be confused. */
export function preAuthEncoding(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${body.length} `), body]);
}

interface Signing {
  key: string;
  claim: Claim;
  /** Verifies a stored envelope with these keys. Returns what is wrong with it. */
  problem(envelope: Buffer, keys: readonly TrustedKey[]): string | undefined;
}

/** Signs a claim and stores the envelope. An envelope that is already stored must be valid. */
export async function signOnce(
  { store, signer }: { store: EvidenceStore; signer: Signer },
  { key, claim, problem }: Signing,
): Promise<void> {
  if (await store.putOnce(key, await signClaim(claim, signer), 'application/json')) return;
  const found = problem(await store.get(key), await signer.trusted());
  if (found === undefined) return;
  throw new CountersignError(
    'CHAIN_BROKEN',
    `${key} is not a signature of this stage (${found}). Find out who wrote it`,
  );
}

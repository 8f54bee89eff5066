import * as z from 'zod';
import { canonicalJson } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import type { TrustedKey } from '../verify/trusted-keys.ts';

export const PAYLOAD_TYPE = 'application/vnd.in-toto+json';

/** Rejects spare bits in the last character, so that each value has one form. */
const Base64 = z
  .string()
  .refine((text) => Buffer.from(text, 'base64').toString('base64') === text, 'is not canonical base64');

export const Envelope = z.strictObject({
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
export async function signClaim(
  { subject, sha256, predicateType, predicate }: Claim,
  signer: SigningKey,
): Promise<Buffer> {
  const statement: Statement = {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: subject, digest: { sha256 } }],
    predicateType,
    predicate: { ...predicate, keyId: signer.keyId },
  };
  const payload = Buffer.from(canonicalJson(statement));
  const { keyId, signature } = await signer.sign(preAuthEncoding(PAYLOAD_TYPE, payload));
  const envelope: z.infer<typeof Envelope> = {
    payload: payload.toString('base64'),
    payloadType: PAYLOAD_TYPE,
    signatures: [{ keyid: keyId, sig: signature.toString('base64') }],
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

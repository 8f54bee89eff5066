import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import * as z from 'zod';
import { canonicalJson, sha256Hex } from '../run/canonical-json.ts';
import type { Signer } from './evidence-store.ts';
import { parseJson } from './parse-json.ts';

const PAYLOAD_TYPE = 'application/vnd.in-toto+json';

/** One way to write the same bytes: spare bits in the last character would let an envelope change unseen. */
const Base64 = z
  .string()
  .refine((text) => Buffer.from(text, 'base64').toString('base64') === text, 'is not canonical base64');

const Envelope = z.strictObject({
  payload: Base64,
  payloadType: z.literal(PAYLOAD_TYPE),
  signatures: z.tuple([z.strictObject({ keyid: z.string(), sig: Base64 })]),
});

/** An in-toto statement: what is true of the thing with this digest. It names its key, which DSSE itself does not sign. */
const Statement = z.strictObject({
  _type: z.literal('https://in-toto.io/Statement/v1'),
  subject: z.tuple([z.strictObject({ name: z.string(), digest: z.strictObject({ sha256: z.string() }) })]),
  predicateType: z.string(),
  predicate: z.looseObject({ keyId: z.string() }),
});
export type Statement = z.infer<typeof Statement>;

/** What there is to sign. KMS takes at most 4,096 bytes, so it stays small. */
export interface Claim {
  subject: string;
  sha256: string;
  predicateType: string;
  predicate: Record<string, unknown>;
}

/** A DSSE envelope around the statement of a claim. */
export async function signClaim({ subject, sha256, predicateType, predicate }: Claim, signer: Signer): Promise<Buffer> {
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

/** DSSE signs type and body with their lengths, so that neither can be taken for the other. */
export function preAuthEncoding(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${body.length} `), body]);
}

export interface OpenedEnvelope {
  statement: Statement;
  keyId: string;
  payload: Buffer;
  signature: Buffer;
}

/** Reads an envelope written by `signClaim`, byte for byte; says in words what is wrong with any other. */
export function openEnvelope(bytes: Buffer): OpenedEnvelope {
  const envelope = parsed(Envelope, bytes);
  const [{ keyid, sig }] = envelope.signatures;
  const payload = Buffer.from(envelope.payload, 'base64');
  const statement = parsed(Statement, payload);
  if (statement.predicate.keyId !== keyid) throw new Error('its key id is not the one the statement names');
  return { statement, keyId: keyid, payload, signature: Buffer.from(sig, 'base64') };
}

function parsed<T>(schema: z.ZodType<T>, bytes: Buffer): T {
  const json = parseJson(bytes);
  if (json === undefined) throw new Error('it is not JSON');
  const { success, data, error } = schema.safeParse(json);
  if (!success) throw new Error(z.prettifyError(error));
  if (!bytes.equals(Buffer.from(canonicalJson(data)))) throw new Error('it is not in canonical form (RFC 8785)');
  return data;
}

/** A public key somebody trusts. */
export interface TrustedKey {
  key: KeyObject;
  algorithm: 'Ed25519' | 'ECDSA P-256 with SHA-256';
  /** The sha256 of its SPKI bytes. */
  fingerprint: string;
}

/** What a key signs with is the key's own, never an envelope's word for it. */
export function trustedKey(key: KeyObject): TrustedKey {
  const fingerprint = sha256Hex(key.export({ type: 'spki', format: 'der' }));
  if (key.asymmetricKeyType === 'ed25519') return { key, algorithm: 'Ed25519', fingerprint };
  if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1') {
    return { key, algorithm: 'ECDSA P-256 with SHA-256', fingerprint };
  }
  throw new Error('evidence is signed with Ed25519 or ECDSA P-256 keys; this key is neither');
}

const PEM_BLOCK = /-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g;

/** Every public key of a PEM file, or of the published list of keys, which is JSON and escapes its line ends. */
export function trustedKeys(text: string): TrustedKey[] {
  const blocks = text.replaceAll('\\n', '\n').match(PEM_BLOCK) ?? [];
  return blocks.map((block) => trustedKey(createPublicKey(block)));
}

/** The key that made the signature, if it is one of these. */
export function signingKey(envelope: OpenedEnvelope, keys: readonly TrustedKey[]): TrustedKey | undefined {
  const signed = preAuthEncoding(PAYLOAD_TYPE, envelope.payload);
  return keys.find(({ key, algorithm }) =>
    verify(algorithm === 'Ed25519' ? null : 'sha256', signed, key, envelope.signature),
  );
}

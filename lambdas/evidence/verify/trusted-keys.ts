import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import * as z from 'zod';
import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { Sha256 } from '../../run/digest.ts';
import { daysLater } from '../daily-log/daily-log.ts';
import { PAYLOAD_TYPE, preAuthEncoding } from '../signing/dsse.ts';
import type { OpenedEnvelope } from './open-envelope.ts';

/** A key as the stage publishes it. */
const PublishedKey = z.object({
  /** As in envelopes. */
  keyId: z.string(),
  /** The day (UTC) on which the next key replaced it; null for the current key. */
  validUntil: z.iso.date().nullable(),
  algorithm: z.enum(['Ed25519', 'ECDSA P-256 with SHA-256']),
  /** The sha256 of its SPKI bytes. */
  fingerprint: Sha256,
  pem: z.string(),
});
export type PublishedKey = z.infer<typeof PublishedKey>;
const PublishedKeys = z.object({ keys: z.array(PublishedKey) });

/** A public key that the auditor trusts. */
export interface TrustedKey extends Pick<PublishedKey, 'algorithm' | 'fingerprint'> {
  key: KeyObject;
  /** From the published list; absent for a PEM file. */
  published?: Pick<PublishedKey, 'keyId' | 'validUntil'>;
}

/** A rotation is deployed during its day, and a run may end around midnight. */
const RETIRED_KEY_GRACE_DAYS = 1;

/** The key determines the algorithm; the envelope does not. */
export function trustedKey(key: KeyObject): TrustedKey {
  const fingerprint = sha256Hex(key.export({ type: 'spki', format: 'der' }));
  if (key.asymmetricKeyType === 'ed25519') return { key, algorithm: 'Ed25519', fingerprint };
  if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1') {
    return { key, algorithm: 'ECDSA P-256 with SHA-256', fingerprint };
  }
  throw new Error('evidence is signed with Ed25519 or ECDSA P-256 keys; this key is neither');
}

const PEM_BLOCK = /-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g;

/** All public keys of a PEM file or of a published list. */
export function trustedKeys(text: string): TrustedKey[] {
  const json = tryParseJsonBytes(Buffer.from(text));
  if (json !== undefined) return publishedIn(json);
  return (text.match(PEM_BLOCK) ?? []).map((block) => trustedKey(createPublicKey(block)));
}

function publishedIn(json: unknown): TrustedKey[] {
  const { data } = PublishedKeys.safeParse(json);
  if (!data) throw new Error('it is JSON, but not a list of published keys');
  return data.keys.map(({ pem, fingerprint, keyId, validUntil }) => {
    const trusted = trustedKey(createPublicKey(pem));
    if (trusted.fingerprint !== fingerprint) throw new Error(`${keyId} has the fingerprint of another key`);
    return { ...trusted, published: { keyId, validUntil } };
  });
}

/** The key that made the signature; undefined if none of these did. */
export function signingKey(envelope: OpenedEnvelope, keys: readonly TrustedKey[]): TrustedKey | undefined {
  const signed = preAuthEncoding(PAYLOAD_TYPE, envelope.signed);
  return keys.find(({ key, algorithm }) =>
    verify(algorithm === 'Ed25519' ? null : 'sha256', signed, key, envelope.signature),
  );
}

/** Checks a valid signature against the published facts of its key. Returns why it does not count. */
export function checkKey({ published }: TrustedKey, keyId: string, day: string): string | undefined {
  if (!published) return undefined;
  if (published.keyId !== keyId) return `names ${keyId}, but ${published.keyId} made it`;
  const { validUntil } = published;
  if (validUntil === null || day <= daysLater(validUntil, RETIRED_KEY_GRACE_DAYS)) return undefined;
  return `is of ${day}, but its key was retired on ${validUntil}`;
}

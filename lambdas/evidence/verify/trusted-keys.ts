import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import * as z from 'zod';
import { tryParseJsonFile } from '../../entry/parse-json.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { Sha256 } from '../../run/digest.ts';
import { daysLater } from '../daily-log/daily-log.ts';
import { PAYLOAD_TYPE, preAuthEncoding } from '../signing/dsse.ts';
import type { OpenedEnvelope } from './open-envelope.ts';

/** A key as the stage publishes it, in the form that programs for signatures read. */
const PublishedKey = z.object({
  /** As envelopes name it. */
  keyId: z.string(),
  /** The day (UTC) on which the next key took over; null for the one that signs. */
  validUntil: z.iso.date().nullable(),
  algorithm: z.enum(['Ed25519', 'ECDSA P-256 with SHA-256']),
  /** The sha256 of its SPKI bytes. */
  fingerprint: Sha256,
  pem: z.string(),
});
export type PublishedKey = z.infer<typeof PublishedKey>;
const PublishedKeys = z.object({ keys: z.array(PublishedKey) });

/** A public key somebody trusts. */
export interface TrustedKey extends Pick<PublishedKey, 'algorithm' | 'fingerprint'> {
  key: KeyObject;
  /** What its stage says of it; a PEM file says nothing of the kind. */
  published?: Pick<PublishedKey, 'keyId' | 'validUntil'>;
}

/** A rotation is deployed some time during its day, and a run may end around midnight. */
const RETIRED_KEY_GRACE_DAYS = 1;

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

/** Every public key of a PEM file, or of the published list of keys. */
export function trustedKeys(text: string): TrustedKey[] {
  const json = tryParseJsonFile(Buffer.from(text));
  if (json !== undefined) return publishedIn(json);
  return (text.match(PEM_BLOCK) ?? []).map((block) => trustedKey(createPublicKey(block)));
}

function publishedIn(json: unknown): TrustedKey[] {
  const { data } = PublishedKeys.safeParse(json);
  if (!data) throw new Error('it is JSON, but not the list of keys that a stage publishes');
  return data.keys.map(({ pem, fingerprint, keyId, validUntil }) => {
    const trusted = trustedKey(createPublicKey(pem));
    if (trusted.fingerprint !== fingerprint) throw new Error(`${keyId} has the fingerprint of another key`);
    return { ...trusted, published: { keyId, validUntil } };
  });
}

/** The key that made the signature, if it is one of these. */
export function signingKey(envelope: OpenedEnvelope, keys: readonly TrustedKey[]): TrustedKey | undefined {
  const signed = preAuthEncoding(PAYLOAD_TYPE, envelope.payload);
  return keys.find(({ key, algorithm }) =>
    verify(algorithm === 'Ed25519' ? null : 'sha256', signed, key, envelope.signature),
  );
}

/** Why a good signature does not count by what is published of its key: on something of this day, naming its key so. */
export function checkKey({ published }: TrustedKey, keyId: string, day: string): string | undefined {
  if (!published) return undefined;
  if (published.keyId !== keyId) return `names ${keyId}, but was made by the key published as ${published.keyId}`;
  const { validUntil } = published;
  if (validUntil === null || day <= daysLater(validUntil, RETIRED_KEY_GRACE_DAYS)) return undefined;
  return `is by a key that was retired on ${validUntil}, but on something of ${day}`;
}

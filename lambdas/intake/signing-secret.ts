import type { TriggerSource } from '../run/run.ts';

/** Whoever signs requests that reach us. */
export type SigningSource = TriggerSource | 'slack';
export const SIGNING_SOURCES: readonly SigningSource[] = ['github', 'servicenow', 'slack'];

/** 128 bits, if they are random. Slack's secrets have 32 bytes; GitHub accepts any text. */
export const SECRET_MIN_BYTES = 16;
/** What Standard Webhooks asks of a key that is written as `whsec_` and base64. */
export const STANDARD_WEBHOOKS_KEY_BYTES = { min: 24, max: 64 };
const STANDARD_WEBHOOKS_PREFIX = 'whsec_';
/** Longer ones are hashed by HMAC anyway; nobody has one, so this is something else that was pasted here. */
const SECRET_MAX_BYTES = 1024;

export type SigningKey = { key: Buffer; flaw?: undefined } | { key?: undefined; flaw: string };

/** The bytes that a sender signs with, or what is wrong with the secret. The flaw never quotes it. */
export function signingKey(source: SigningSource, secret: string): SigningKey {
  if (secret === '') return { flaw: 'it is empty' };
  if (secret !== secret.trim()) return { flaw: 'it begins or ends with white space' };
  if (source === 'servicenow' && secret.startsWith(STANDARD_WEBHOOKS_PREFIX)) return standardWebhooksKey(secret);
  const key = Buffer.from(secret);
  if (key.length < SECRET_MIN_BYTES)
    return { flaw: `it has ${key.length} bytes; at least ${SECRET_MIN_BYTES} are needed` };
  if (key.length > SECRET_MAX_BYTES)
    return { flaw: `it has ${key.length} bytes; at most ${SECRET_MAX_BYTES} are accepted` };
  return { key };
}

function standardWebhooksKey(secret: string): SigningKey {
  const encoded = secret.slice(STANDARD_WEBHOOKS_PREFIX.length);
  const key = Buffer.from(encoded, 'base64');
  // The decoder skips what it does not know. Only what it would write itself is what somebody meant.
  if (key.toString('base64') !== encoded) return { flaw: 'what follows `whsec_` is not base64 (with its padding)' };
  const { min, max } = STANDARD_WEBHOOKS_KEY_BYTES;
  if (key.length < min || key.length > max) {
    return { flaw: `what follows \`whsec_\` has ${key.length} bytes; ${min} to ${max} are needed` };
  }
  return { key };
}

/** One secret of a tenant's document that is not used, and why. */
export interface SecretFlaw {
  source: string;
  /** Its place in the list, from 1. */
  position: number;
  flaw: string;
}

/** Sorts the secrets of a document `{"github": ["current", "previous"]}` into those that can be used and those that cannot. */
export function checkedSecrets(document: Readonly<Record<string, readonly string[]>>): {
  usable: Record<string, string[]>;
  flaws: SecretFlaw[];
} {
  const usable: Record<string, string[]> = {};
  const flaws: SecretFlaw[] = [];
  for (const [source, secrets] of Object.entries(document)) {
    const known = SIGNING_SOURCES.find((each) => each === source);
    for (const [index, secret] of secrets.entries()) {
      const flaw = known
        ? signingKey(known, secret).flaw
        : `nobody signs as this; the names are ${SIGNING_SOURCES.join(', ')}`;
      if (flaw !== undefined) flaws.push({ source, position: index + 1, flaw });
      else usable[source] = [...(usable[source] ?? []), secret];
    }
  }
  return { usable, flaws };
}

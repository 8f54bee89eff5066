import * as z from 'zod';

export const NAMED_SOURCES = ['github', 'servicenow', 'slack'] as const;
const GENERIC_PREFIX = 'generic/';
/** The systems that sign their requests to Countersign; `generic/alerts` is the tenant's webhook source `alerts`. */
export type SigningSource = (typeof NAMED_SOURCES)[number] | `${typeof GENERIC_PREFIX}${string}`;

export const genericSource = (name: string): SigningSource => `${GENERIC_PREFIX}${name}`;

/** The scheme that a source signs with. Sources of a tenant's own use Standard Webhooks, as our ServiceNow rule does. */
export const schemeOf = (source: SigningSource): 'github' | 'slack' | 'standard' =>
  source === 'github' || source === 'slack' ? source : 'standard';

export function isSigningSource(source: string): source is SigningSource {
  return NAMED_SOURCES.some((each) => each === source) || WEBHOOK_SOURCE.test(source);
}
const WEBHOOK_SOURCE = /^generic\/[a-z][a-z0-9-]{0,39}$/;

/** The secrets with which a source may sign for a tenant: none for an unknown tenant, two during a rotation. */
export interface SigningSecrets {
  secretsFor(tenant: string, source: SigningSource): Promise<readonly string[]>;
}

/** One document per tenant: `{"github": ["current", "previous"], "servicenow": ["..."]}`. */
export const SecretDocument = z.record(
  z.string(),
  z.union([z.string().transform((one) => [one]), z.array(z.string())]),
);

/** 128 bits if they are random. Slack's secrets have 32 bytes; GitHub accepts any text. */
const SECRET_MIN_BYTES = 16;
/** The limits of Standard Webhooks for a key that is written as `whsec_` and base64. */
const STANDARD_WEBHOOKS_KEY_BYTES = { min: 24, max: 64 };
const STANDARD_WEBHOOKS_PREFIX = 'whsec_';
/** HMAC hashes a longer key anyway; a longer text is most likely pasted here by mistake. */
const SECRET_MAX_BYTES = 1024;

export type SigningKey = { key: Buffer; problem?: undefined } | { key?: undefined; problem: string };

/** The bytes of the HMAC key, or the problem with the secret, which is never quoted. */
export function signingKey(source: SigningSource, secret: string): SigningKey {
  if (secret === '') return { problem: 'it is empty' };
  if (secret !== secret.trim()) return { problem: 'it begins or ends with white space' };
  if (schemeOf(source) === 'standard' && secret.startsWith(STANDARD_WEBHOOKS_PREFIX))
    return standardWebhooksKey(secret);
  const key = Buffer.from(secret);
  if (key.length < SECRET_MIN_BYTES)
    return { problem: `it has ${key.length} bytes; at least ${SECRET_MIN_BYTES} are needed` };
  if (key.length > SECRET_MAX_BYTES)
    return { problem: `it has ${key.length} bytes; at most ${SECRET_MAX_BYTES} are accepted` };
  return { key };
}

function standardWebhooksKey(secret: string): SigningKey {
  const encoded = secret.slice(STANDARD_WEBHOOKS_PREFIX.length);
  const key = Buffer.from(encoded, 'base64');
  // The decoder skips invalid characters, so the key is encoded again and compared.
  if (key.toString('base64') !== encoded) return { problem: 'the text after `whsec_` is not base64 with padding' };
  const { min, max } = STANDARD_WEBHOOKS_KEY_BYTES;
  if (key.length < min || key.length > max) {
    return { problem: `the text after \`whsec_\` has ${key.length} bytes; ${min} to ${max} are needed` };
  }
  return { key };
}

/** A secret of a tenant's document that cannot be used. */
export interface SecretProblem {
  source: string;
  /** Its place in the list, from 1. */
  position: number;
  problem: string;
}

/** Separates the usable secrets of a document from the others. */
export function checkSecrets(document: Readonly<Record<string, readonly string[]>>): {
  usable: Record<string, string[]>;
  problems: SecretProblem[];
} {
  const usable: Record<string, string[]> = {};
  const problems: SecretProblem[] = [];
  for (const [source, secrets] of Object.entries(document)) {
    const known = isSigningSource(source) ? source : undefined;
    for (const [index, secret] of secrets.entries()) {
      const problem = known
        ? signingKey(known, secret).problem
        : `unknown source; the sources are ${NAMED_SOURCES.join(', ')} and generic/NAME`;
      if (problem !== undefined) problems.push({ source, position: index + 1, problem });
      else usable[source] = [...(usable[source] ?? []), secret];
    }
  }
  return { usable, problems };
}

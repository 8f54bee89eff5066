import { createHmac, createSecretKey } from 'node:crypto';
import { equalInConstantTime } from '../entry/constant-time.ts';
import { type SigningSource, schemeOf, signingKey } from './signing-secrets.ts';

/** The allowed difference between a signed timestamp and the current time, in both directions. */
const TIMESTAMP_TOLERANCE_MS = 5 * 60 * 1000;

type Headers = Readonly<Record<string, string | undefined>>;

interface Scheme {
  signatureHeader: string;
  /** Several signatures may be listed, separated by spaces. */
  isList?: true;
  format(mac: Buffer): string;
  /** The text before the body, from these headers; each of them is required. */
  signedHeaders: readonly string[];
  textBeforeBody(...values: string[]): string;
  timestampHeader?: string;
}

const SCHEMES: Record<ReturnType<typeof schemeOf>, Scheme> = {
  /** `X-Hub-Signature-256: sha256=<hex>` over the body. No time is signed. */
  github: {
    signatureHeader: 'x-hub-signature-256',
    format: (mac) => `sha256=${mac.toString('hex')}`,
    signedHeaders: [],
    textBeforeBody: () => '',
  },
  /** Standard Webhooks: `v1,<base64>` over `id.timestamp.body`. */
  standard: {
    signatureHeader: 'webhook-signature',
    isList: true,
    format: (mac) => `v1,${mac.toString('base64')}`,
    signedHeaders: ['webhook-id', 'webhook-timestamp'],
    textBeforeBody: (id, timestamp) => `${id}.${timestamp}.`,
    timestampHeader: 'webhook-timestamp',
  },
  /** `X-Slack-Signature: v0=<hex>` over `v0:timestamp:body`. */
  slack: {
    signatureHeader: 'x-slack-signature',
    format: (mac) => `v0=${mac.toString('hex')}`,
    signedHeaders: ['x-slack-request-timestamp'],
    textBeforeBody: (timestamp) => `v0:${timestamp}:`,
    timestampHeader: 'x-slack-request-timestamp',
  },
};

/** Whether one of the secrets (two during a rotation) has signed these bytes, at about this time where time is signed. */
export function isSigned(
  source: SigningSource,
  secrets: readonly string[],
  body: Buffer,
  headers: Headers,
  nowMs: number,
): boolean {
  const { signatureHeader, isList, format, signedHeaders, textBeforeBody, timestampHeader } = SCHEMES[schemeOf(source)];
  const signature = headers[signatureHeader] ?? '';
  const given = isList ? signature.split(' ') : [signature];
  const values = signedHeaders.map((name) => headers[name] ?? '');
  const matches = anyKeyMatches(source, secrets, (key) => {
    const expected = format(
      // With bytes as the key, it would take three times as long.
      createHmac('sha256', createSecretKey(key))
        .update(textBeforeBody(...values))
        .update(body)
        .digest(),
    );
    return given.map((each) => equalInConstantTime(expected, each)).includes(true);
  });
  const isFresh = timestampHeader === undefined || isNear(headers[timestampHeader] ?? '', nowMs);
  return matches && isFresh && !values.includes('');
}

const isNear = (seconds: string, nowMs: number): boolean =>
  /^\d+$/.test(seconds) && Math.abs(nowMs - Number(seconds) * 1000) <= TIMESTAMP_TOLERANCE_MS;

/** The number of secrets during a rotation. */
const KEYS_TRIED_MIN = 2;
const UNUSED_KEY = Buffer.from('no-such-tenant');

/**
 * Tries the key of every secret, and an unused key up to the usual number, so that the duration shows neither whether a
 * tenant exists nor whether it rotates a secret. A malformed secret has no key: partly decoded, it could be an empty key,
 * with which anybody can sign.
 */
export function anyKeyMatches(
  source: SigningSource,
  secrets: readonly string[],
  matches: (key: Buffer) => boolean,
): boolean {
  const keys = secrets.flatMap((secret) => signingKey(source, secret).key ?? []);
  const missing = Math.max(0, KEYS_TRIED_MIN - keys.length);
  const results = [...keys, ...Array<Buffer>(missing).fill(UNUSED_KEY)].map(matches);
  return results.slice(0, keys.length).includes(true);
}

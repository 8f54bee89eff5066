import { createHmac, timingSafeEqual } from 'node:crypto';
import { type SigningSource, signingKey } from './signing-secret.ts';

/** How far a signed timestamp may lie from now, either way: replays end, ahead-running clocks do not help. */
const TIMESTAMP_TOLERANCE_MS = 5 * 60 * 1000;

/** Compared without telling by time where two strings differ, nor that their lengths do. */
export function equalInConstantTime(a: string, b: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'length-hiding').update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

/** `X-Hub-Signature-256: sha256=<hex>` over the raw body, by any of the secrets (two while one is being rotated). */
export function isSignedByGithub(secrets: readonly string[], body: Buffer, signature: string | undefined): boolean {
  return anyKey('github', secrets, (key) => {
    const expected = `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;
    return equalInConstantTime(expected, signature ?? '');
  });
}

export interface StandardWebhookHeaders {
  id: string | undefined;
  timestamp: string | undefined;
  signature: string | undefined;
}

/** Standard Webhooks: `v1,<base64>` over `id.timestamp.body`; several signatures may stand side by side. */
export function isSignedAsStandardWebhook(
  secrets: readonly string[],
  body: Buffer,
  headers: StandardWebhookHeaders,
  nowMs: number,
): boolean {
  const { id = '', timestamp = '', signature = '' } = headers;
  const fresh = /^\d+$/.test(timestamp) && Math.abs(nowMs - Number(timestamp) * 1000) <= TIMESTAMP_TOLERANCE_MS;
  const given = signature.split(' ');
  const signed = anyKey('servicenow', secrets, (key) => {
    const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
    return given.map((one) => equalInConstantTime(`v1,${mac}`, one)).includes(true);
  });
  return fresh && id !== '' && signed;
}

/** As many as there are while one is being rotated. */
const KEYS_TRIED_MIN = 2;
const NOBODYS_KEY = Buffer.from('no-such-tenant');

/**
 * Tries the key of every secret, and ones that nobody knows up to the usual number: the time it takes tells neither whether
 * a tenant exists nor whether it rotates a secret. A malformed secret has no key: decoded as far as it goes, it might be an
 * empty one, which everybody knows.
 */
export function anyKey(source: SigningSource, secrets: readonly string[], matches: (key: Buffer) => boolean): boolean {
  const keys = secrets.flatMap((secret) => signingKey(source, secret).key ?? []);
  const missing = Math.max(0, KEYS_TRIED_MIN - keys.length);
  const verdicts = [...keys, ...Array<Buffer>(missing).fill(NOBODYS_KEY)].map(matches);
  return verdicts.slice(0, keys.length).includes(true);
}

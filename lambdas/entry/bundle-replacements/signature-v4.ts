/**
 * Bundles contain this file in place of `@smithy/signature-v4` (lib/bundle-functions.ts). The package computes a further HMAC with each
 * request only to find the cached signing key, and awaits each hash: half of the CPU time of a signature.
 */
import { createHash, createHmac } from 'node:crypto';
// @ts-expect-error The package has types for its entry point only; this is the file of it.
import { SignatureV4 as OfPackage } from '../../../node_modules/@smithy/signature-v4/dist-es/index.js';
import type { AwsCredentials } from '../sign-aws-request.ts';

// @ts-expect-error The same.
export * from '../../../node_modules/@smithy/signature-v4/dist-es/index.js';

/** The keys of the last requests, by what they are derived from. Each client has its own service. */
const keys = new Map<string, Promise<Uint8Array>>();
const KEYS_MAX = 20;

export class SignatureV4 extends OfPackage {
  declare service: string;

  getSigningKey(credentials: AwsCredentials, region: string, shortDate: string, service?: string): Promise<Uint8Array> {
    const { accessKeyId, secretAccessKey } = credentials;
    const parts = JSON.stringify([accessKeyId, secretAccessKey, region, shortDate, service || this.service]);
    const known = keys.get(parts);
    if (known) return known;
    const [oldest] = keys.keys();
    if (oldest !== undefined && keys.size >= KEYS_MAX) keys.delete(oldest);
    const key = super.getSigningKey(credentials, region, shortDate, service);
    keys.set(parts, key);
    key.catch(() => keys.delete(parts));
    return key;
  }

  async getSignature(longDate: string, scope: string, key: Promise<Uint8Array>, request: string): Promise<string> {
    const hashed = createHash('sha256').update(request).digest('hex');
    return createHmac('sha256', await key)
      .update(`AWS4-HMAC-SHA256\n${longDate}\n${scope}\n${hashed}`)
      .digest('hex');
  }
}

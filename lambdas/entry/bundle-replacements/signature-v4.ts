/**
 * Bundles contain this file in place of `@smithy/signature-v4` (lib/bundle-functions.ts). The package computes a further HMAC with each
 * request only to find the cached signing key, and awaits each hash: more than half of the CPU time of a signature.
 */
import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
// @ts-expect-error The package has types for its entry point only; this is the file of it.
import { SignatureV4 as OfPackage } from '../../../node_modules/@smithy/signature-v4/dist-es/index.js';
import type { AwsCredentials } from '../sign-aws-request.ts';

// @ts-expect-error The same.
export * from '../../../node_modules/@smithy/signature-v4/dist-es/index.js';

/** The keys of the last requests, by what they are derived from. Each client has its own service. An HMAC with bytes takes ten times as long. */
const keys = new Map<string, Promise<KeyObject>>();
const KEYS_MAX = 20;

const HASH = 'x-amz-content-sha256';

interface Request {
  headers: Record<string, string>;
  body?: unknown;
}

export class SignatureV4 extends OfPackage {
  declare service: string;
  declare applyChecksum: boolean;

  getSigningKey(credentials: AwsCredentials, region: string, shortDate: string, service?: string): Promise<KeyObject> {
    const { accessKeyId, secretAccessKey } = credentials;
    const parts = JSON.stringify([accessKeyId, secretAccessKey, region, shortDate, service || this.service]);
    const known = keys.get(parts);
    if (known) return known;
    const [oldest] = keys.keys();
    if (oldest !== undefined && keys.size >= KEYS_MAX) keys.delete(oldest);
    const bytes: Promise<Uint8Array> = super.getSigningKey(credentials, region, shortDate, service);
    const key = bytes.then((each) => createSecretKey(each));
    keys.set(parts, key);
    key.catch(() => keys.delete(parts));
    return key;
  }

  /** The package takes a hash that it finds in this header, and would add the header itself. */
  signRequest(request: Request, options: object): Promise<Request> {
    const { headers, body } = request;
    if (!this.applyChecksum || (typeof body !== 'string' && !(body instanceof Uint8Array))) {
      return super.signRequest(request, options);
    }
    return super.signRequest({ ...request, headers: { [HASH]: hash('sha256', body, 'hex'), ...headers } }, options);
  }

  async getSignature(longDate: string, scope: string, key: Promise<KeyObject>, request: string): Promise<string> {
    const hashed = hash('sha256', request, 'hex');
    return createHmac('sha256', await key)
      .update(`AWS4-HMAC-SHA256\n${longDate}\n${scope}\n${hashed}`)
      .digest('hex');
  }
}

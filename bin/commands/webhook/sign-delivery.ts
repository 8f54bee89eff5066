import { createHmac, randomUUID } from 'node:crypto';
import { type SigningSource, signingKey } from '../../../lambdas/intake/signing-secrets.ts';
import { UsageError } from '../failure.ts';

export interface DeliveryFacts {
  secret: string;
  /** Delivery id of the sender; the same id again is a duplicate. Default: a new id. */
  id?: string;
  /** GitHub event, for example `issues`. */
  event: string;
  nowMs: number;
}

/** The headers with which the source signs a webhook. */
export function signedHeaders(
  source: SigningSource,
  body: Buffer,
  { secret, id = randomUUID(), event, nowMs }: DeliveryFacts,
): Record<string, string> {
  const key = keyOf(source, secret);
  const type = { 'content-type': 'application/json' };
  if (source === 'github') {
    const signature = createHmac('sha256', key).update(body).digest('hex');
    return { ...type, 'x-github-event': event, 'x-github-delivery': id, 'x-hub-signature-256': `sha256=${signature}` };
  }
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
  return { ...type, 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}

function keyOf(source: SigningSource, secret: string): Buffer {
  const { key, problem } = signingKey(source, secret);
  if (key) return key;
  throw new UsageError(`unusable signing secret: ${problem}`);
}

import { createHmac, randomUUID } from 'node:crypto';
import { signingKey } from '../../../lambdas/intake/signing-secrets.ts';
import type { TriggerSource } from '../../../lambdas/run/run.ts';
import { UsageError } from '../failure.ts';

export interface DeliveryFacts {
  secret: string;
  /** The sender's name for this delivery; the same again is a repeat. Made up if not given. */
  id?: string;
  /** What GitHub says happened, `issues`. */
  event: string;
  nowMs: number;
}

/** The headers a sender adds to a body, so that the intake knows who sent it and that nobody changed it. */
export function signedHeaders(
  source: TriggerSource,
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

function keyOf(source: TriggerSource, secret: string): Buffer {
  const { key, problem } = signingKey(source, secret);
  if (key) return key;
  throw new UsageError(`the secret cannot be used: ${problem}`);
}

/** Whose the local host is unless one says otherwise. */
export const LOCAL_TENANT = 'acme';

/** The secrets of the local host, by its own scheme. */
export function localSecret(source: TriggerSource, tenant: string): string {
  return tenant === LOCAL_TENANT ? `local-${source}-secret` : `local-${tenant}-${source}-secret`;
}

export const localOwnerKey = (tenant: string) =>
  tenant === LOCAL_TENANT ? 'local-owner-key' : `local-${tenant}-owner-key`;

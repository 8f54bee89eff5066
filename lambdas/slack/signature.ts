import { createHmac } from 'node:crypto';
import { anyKey, equalInConstantTime } from '../intake/signature.ts';

/** How far a signed timestamp may lie from now, either way: replays end, ahead-running clocks do not help. */
const TIMESTAMP_TOLERANCE_MS = 5 * 60 * 1000;

export interface SlackSignature {
  timestamp: string | undefined;
  signature: string | undefined;
}

/** `X-Slack-Signature: v0=<hex>` over `v0:timestamp:body`, by any of the secrets (two while one is being rotated). */
export function isSignedBySlack(
  secrets: readonly string[],
  body: Buffer,
  { timestamp = '', signature = '' }: SlackSignature,
  nowMs: number,
): boolean {
  const fresh = /^\d+$/.test(timestamp) && Math.abs(nowMs - Number(timestamp) * 1000) <= TIMESTAMP_TOLERANCE_MS;
  const signed = anyKey('slack', secrets, (key) => {
    const mac = createHmac('sha256', key).update(`v0:${timestamp}:`).update(body).digest('hex');
    return equalInConstantTime(`v0=${mac}`, signature);
  });
  return fresh && signed;
}

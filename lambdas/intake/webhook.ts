import { type HttpAnswer, type HttpEvent, json, Problem, rawBody } from '../entry/http.ts';
import type { Clock } from '../entry/ports.ts';
import { sha256Hex, wellFormed } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { TriggerSource } from '../run/run.ts';
import { acceptDelivery, type Intake } from './accept-delivery.ts';
import type { Delivery } from './delivery.ts';
import { assertShallow } from './json-depth.ts';
import type { SigningSecrets } from './signing-secrets.ts';

/** Most events are a few kilobytes; beyond this, a delivery is refused before anything reads it. */
export const WEBHOOK_BODY_MAX_BYTES = 1024 * 1024;

export interface WebhookSource {
  source: TriggerSource;
  isSigned(secrets: readonly string[], body: Buffer, headers: HttpEvent['headers'], nowMs: number): boolean;
  delivery(headers: HttpEvent['headers'], payload: unknown): Delivery;
}

/** The one door for webhooks: size, signature over the raw bytes, shape, then the transaction. Nothing is written before. */
export async function receiveWebhook(
  intake: Intake & { secrets: SigningSecrets; clock: Clock },
  { source, isSigned, delivery }: WebhookSource,
  event: HttpEvent,
): Promise<HttpAnswer> {
  const tenant = event.pathParameters?.tenant ?? '';
  const body = rawBody(event);
  if (body.length > WEBHOOK_BODY_MAX_BYTES) {
    throw new Problem(
      413,
      'TOO_LARGE',
      `the body has ${body.length} bytes; at most ${WEBHOOK_BODY_MAX_BYTES} are taken`,
    );
  }
  const secrets = await intake.secrets.secretsFor(tenant, source);
  if (!isSigned(secrets, body, event.headers, intake.clock.now())) {
    throw new Problem(401, 'UNAUTHORIZED', 'the signature does not fit this tenant, body and time');
  }
  try {
    const accepted = await acceptDelivery(intake, tenant, delivery(event.headers, parse(body)), sha256Hex(body));
    return json(202, accepted);
  } catch (error) {
    if (error instanceof CountersignError && error.code === 'IDEMPOTENCY_CONFLICT') {
      intake.log.error('a delivery came again with another body', { tenant, source, error });
      throw new Problem(409, error.code, error.message);
    }
    if (error instanceof CountersignError && error.code === 'ROW_TOO_LARGE') {
      throw new Problem(413, error.code, error.message);
    }
    throw error;
  }
}

function parse(body: Buffer): unknown {
  const text = body.toString('utf8');
  assertShallow(text);
  try {
    return wellFormed(JSON.parse(text));
  } catch (error) {
    const why = error instanceof RangeError ? error.message : 'send application/json';
    throw new Problem(400, 'BAD_REQUEST', `the body is not JSON that can be kept: ${why}`);
  }
}

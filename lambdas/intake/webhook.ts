import { type HttpEvent, type HttpResponse, json, Problem, parseJsonBody, rawBody } from '../entry/http.ts';
import type { Clock } from '../entry/ports.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import { CountersignError, refusalOf } from '../run/errors.ts';
import type { TriggerSource } from '../run/run.ts';
import { acceptDelivery, type Intake } from './accept-delivery.ts';
import type { Delivery } from './delivery.ts';
import type { SigningSecrets } from './signing-secrets.ts';

/**
 * Most events are a few kilobytes; a push of 2,048 commits has 1.1 MB. Lambda accepts 6 MB with the body as a JSON string
 * in it, and every quotation mark of the body takes two bytes there.
 */
export const WEBHOOK_BODY_MAX_BYTES = 4 * 1024 * 1024;
/** How GitHub sends a delivery as a form. No JSON text begins like this, so the signed bytes themselves say what they are. */
const FORM_PREFIX = 'payload=';

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
): Promise<HttpResponse> {
  const tenant = event.pathParameters?.tenant ?? '';
  const body = rawBody(event);
  if (body.length > WEBHOOK_BODY_MAX_BYTES) {
    throw new Problem(
      413,
      'TOO_LARGE',
      `the body has ${body.length} bytes; at most ${WEBHOOK_BODY_MAX_BYTES} are accepted`,
    );
  }
  const secrets = await intake.secrets.secretsFor(tenant, source);
  if (!isSigned(secrets, body, event.headers, intake.clock.now())) {
    throw new Problem(401, 'UNAUTHORIZED', 'the signature does not fit this tenant, body and time');
  }
  try {
    const accepted = await acceptDelivery(
      intake,
      tenant,
      delivery(event.headers, parseJsonBody(jsonText(body.toString('utf8')))),
      sha256Hex(body),
    );
    return json(202, accepted);
  } catch (error) {
    if (error instanceof CountersignError && error.code === 'IDEMPOTENCY_CONFLICT') {
      intake.log.error('a delivery came again with another body', { tenant, source, error });
      throw new Problem(409, error.code, error.message);
    }
    if (error instanceof CountersignError && error.code === 'CAP_EXCEEDED') {
      intake.log.error('more automations match a delivery than it may start', { tenant, source, error });
      throw new Problem(422, error.code, error.message);
    }
    const refusal = refusalOf(error);
    if (refusal) throw new Problem(refusal.status, refusal.code, refusal.message);
    throw error;
  }
}

/**
 * The JSON of a body, also if it was sent as a form (`payload=…`). The header Content-Type is not signed and not asked:
 * read as a form, a signed JSON body could be made to contain a payload that somebody wrote into a title.
 */
function jsonText(text: string): string {
  if (!text.startsWith(FORM_PREFIX)) return text;
  try {
    if (text.includes('&')) throw new URIError('more than one field');
    return decodeURIComponent(text.slice(FORM_PREFIX.length).replaceAll('+', ' '));
  } catch {
    throw new Problem(
      400,
      'BAD_REQUEST',
      'the body is a form, but not one field `payload` with JSON; choose the content type application/json for the webhook',
    );
  }
}

import { type HttpEvent, type HttpResponse, json, Problem, parseJsonBody, signedBody } from '../entry/http.ts';
import type { Clock } from '../entry/ports.ts';
import { sha256Hex } from '../run/canonical-json.ts';
import { CountersignError, refusalOf } from '../run/errors.ts';
import type { TriggerSource } from '../run/run.ts';
import { validTraceparent } from '../telemetry/trace-context.ts';
import { acceptDelivery, type Intake } from './accept-delivery.ts';
import type { Delivery } from './delivery.ts';
import { observeRefused } from './observe-delivery.ts';
import { isSigned } from './signature.ts';
import type { SigningSecrets, SigningSource } from './signing-secrets.ts';

/** The start of a delivery that GitHub sends as a form. No JSON text starts like this, so Content-Type is not needed. */
const FORM_PREFIX = 'payload=';

export interface WebhookSource {
  source: SigningSource;
  delivery(headers: HttpEvent['headers'], payload: unknown): Delivery | Promise<Delivery>;
}

type WebhookIntake = Intake & { secrets: SigningSecrets; clock: Clock };

export async function receiveWebhook(
  intake: WebhookIntake,
  from: WebhookSource,
  event: HttpEvent,
): Promise<HttpResponse> {
  try {
    return await acceptWebhook(intake, from, event);
  } catch (error) {
    const [source] = from.source.split('/') as [TriggerSource];
    observeRefused(intake, { tenant: event.pathParameters?.tenant ?? '', source, error });
    throw error;
  }
}

/** Checks the size, the signature of the raw bytes and the schema, and then writes everything in one transaction. */
async function acceptWebhook(
  intake: WebhookIntake,
  { source, delivery }: WebhookSource,
  event: HttpEvent,
): Promise<HttpResponse> {
  const tenant = event.pathParameters?.tenant ?? '';
  const body = signedBody(event);
  const secrets = await intake.secrets.secretsFor(tenant, source);
  if (!isSigned(source, secrets, body, event.headers, intake.clock.now())) {
    throw new Problem(
      401,
      'UNAUTHORIZED',
      'the signature does not match this tenant, body and time; check the signing secret and the clock of the sender',
    );
  }
  try {
    const delivered = await delivery(event.headers, parseJsonBody(jsonText(body.toString('utf8'))));
    const traceparent = validTraceparent(event.headers.traceparent);
    const accepted = await acceptDelivery(intake, tenant, { ...delivered, traceparent }, sha256Hex(body));
    return json(202, accepted);
  } catch (error) {
    if (error instanceof CountersignError && error.code === 'IDEMPOTENCY_CONFLICT') {
      intake.log.error('a delivery id was used again with another body', { tenant, source, error });
      throw new Problem(409, error.code, error.message);
    }
    if (error instanceof CountersignError && error.code === 'CAP_EXCEEDED') {
      intake.log.error('too many automations match a delivery', { tenant, source, error });
      throw new Problem(422, error.code, error.message);
    }
    const refusal = refusalOf(error);
    if (refusal) throw new Problem(refusal.status, refusal.code, refusal.message);
    throw error;
  }
}

/**
 * The JSON of a body, which may be a form (`payload=…`). Content-Type is not signed, so it is ignored: otherwise a signed
 * JSON body could be read as a form, with a payload that somebody wrote into an issue title.
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
      'a form body must have exactly one field, `payload`, with JSON; set the content type of the webhook to application/json',
    );
  }
}

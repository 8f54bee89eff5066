import { httpHandler } from '../entry/http.ts';
import { wireIntake } from './intake.wiring.ts';
import { servicenowDelivery } from './servicenow-delivery.ts';
import { isSignedAsStandardWebhook } from './signature.ts';
import { receiveWebhook, type WebhookSource } from './webhook.ts';

const SERVICENOW: WebhookSource = {
  source: 'servicenow',
  isSigned: (secrets, body, headers, nowMs) =>
    isSignedAsStandardWebhook(
      secrets,
      body,
      { id: headers['webhook-id'], timestamp: headers['webhook-timestamp'], signature: headers['webhook-signature'] },
      nowMs,
    ),
  delivery: (_headers, payload) => servicenowDelivery(payload),
};

const intake = wireIntake();

export const handler = httpHandler((event) => receiveWebhook(intake, SERVICENOW, event));

import { httpHandler } from '../entry/http.ts';
import { intakePorts } from './intake-ports.ts';
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

const intake = intakePorts();

export const handler = httpHandler((event) => receiveWebhook(intake, SERVICENOW, event));

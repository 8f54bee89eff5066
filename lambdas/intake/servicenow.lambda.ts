import { httpHandler } from '../entry/http.ts';
import { wireIntake } from './intake.wiring.ts';
import { servicenowDelivery } from './servicenow-delivery.ts';
import { receiveWebhook, type WebhookSource } from './webhook.ts';

const SERVICENOW: WebhookSource = {
  source: 'servicenow',
  delivery: (_headers, payload) => servicenowDelivery(payload),
};

const intake = wireIntake();

export const handler = httpHandler((event) => receiveWebhook(intake, SERVICENOW, event));

import { httpHandler } from '../entry/http.ts';
import { githubDelivery } from './github-delivery.ts';
import { wireIntake } from './intake.wiring.ts';
import { receiveWebhook } from './webhook.ts';

const intake = wireIntake();

export const handler = httpHandler((event) =>
  receiveWebhook(intake, { source: 'github', delivery: githubDelivery }, event),
);

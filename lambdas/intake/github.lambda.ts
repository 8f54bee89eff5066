import { httpHandler } from '../entry/http.ts';
import { githubDelivery } from './github-delivery.ts';
import { wireIntake } from './intake.wiring.ts';
import { isSignedByGithub } from './signature.ts';
import { receiveWebhook, type WebhookSource } from './webhook.ts';

const GITHUB: WebhookSource = {
  source: 'github',
  isSigned: (secrets, body, headers) => isSignedByGithub(secrets, body, headers['x-hub-signature-256']),
  delivery: githubDelivery,
};

const intake = wireIntake();

export const handler = httpHandler((event) => receiveWebhook(intake, GITHUB, event));

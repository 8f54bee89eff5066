import { httpHandler } from '../entry/http.ts';
import { genericDelivery } from './generic-delivery.ts';
import { wireIntake } from './intake.wiring.ts';
import { genericSource } from './signing-secrets.ts';
import { receiveWebhook } from './webhook.ts';

const intake = wireIntake();

export const handler = httpHandler((event) => {
  const { tenant = '', source: name = '' } = event.pathParameters ?? {};
  const source = {
    source: genericSource(name),
    delivery: (headers: typeof event.headers, payload: unknown) =>
      genericDelivery(intake, { tenant, name }, headers, payload),
  };
  return receiveWebhook(intake, source, event);
});

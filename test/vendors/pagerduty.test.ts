import type { EventPayloadV2 } from '@pagerduty/pdjs/build/src/events.js';
import { Ajv } from 'ajv';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { sendEvent } from '../../lambdas/connectors/pagerduty/events.ts';
import { perform } from '../contracts/connectors/connectors-contract.ts';
import { MARK } from '../contracts/connectors/connectors-examples.ts';
import { CREDENTIAL_CANARY, type Outside, openSimulatedOutside } from '../contracts/connectors/connectors-outside.ts';
import { type Recording, recordExchanges } from './recorded-exchanges.ts';

/** The documented responses to an accepted and a refused event (Events API v2). */
const ANSWERS: Record<number, object> = {
  202: {
    type: 'object',
    required: ['status', 'message', 'dedup_key'],
    properties: {
      status: { const: 'success' },
      message: { type: 'string' },
      dedup_key: { type: 'string', maxLength: 255 },
    },
  },
  400: {
    type: 'object',
    required: ['status', 'message', 'errors'],
    properties: {
      status: { const: 'invalid event' },
      message: { type: 'string' },
      errors: { type: 'array', minItems: 1 },
    },
  },
};

let outside: Outside;
let recording: Recording;
beforeEach(async () => {
  recording = recordExchanges();
  outside = await openSimulatedOutside();
});
afterEach(async () => {
  recording.stop();
  await outside.close();
});

const events = () => recording.exchanges.filter(({ url }) => url.pathname.startsWith('/_sim/pagerduty/'));
const routing_key = CREDENTIAL_CANARY.padEnd(32, '0');

it('every event matches PagerDuty’s type, and its response the documentation', async () => {
  await perform(outside, sendEvent, { action: 'trigger', summary: 'Refunds fail', source: 'web', severity: 'error' });
  for (const action of ['acknowledge', 'resolve'] as const) {
    await perform(outside, sendEvent, { action, dedupKey: MARK });
  }
  const triggered: EventPayloadV2 = {
    routing_key,
    event_action: 'trigger',
    dedup_key: MARK,
    payload: { summary: 'Refunds fail', source: 'web', severity: 'error' },
  };
  const acknowledged: Omit<EventPayloadV2, 'payload'> = { routing_key, event_action: 'acknowledge', dedup_key: MARK };
  const resolved: Omit<EventPayloadV2, 'payload'> = { routing_key, event_action: 'resolve', dedup_key: MARK };
  expect(events().map(({ body }) => body)).toEqual([triggered, acknowledged, resolved]);
  for (const { method, url, status, answer } of events()) {
    expect([method, url.pathname]).toEqual(['POST', '/_sim/pagerduty/v2/enqueue']);
    expect(new Ajv().validate(ANSWERS[status] ?? false, answer)).toBe(true);
  }
});

it('an undocumented event is refused in the documented form', async () => {
  await outside.ask('pagerduty', 'POST', '/v2/enqueue', { routing_key, event_action: 'reopen' });
  const [{ status, answer } = { status: 0, answer: undefined }] = events().slice(-1);
  expect(status).toBe(400);
  expect(new Ajv().validate(ANSWERS[400] ?? false, answer)).toBe(true);
});

import * as z from 'zod';
import type { Reversal } from '../../run/receipt.ts';
import { type Access, credentialOf, operation, shortHash, writeKey } from '../connector.ts';
import { exchange, urlAt } from '../exchange.ts';

const SUMMARY_MAX_CHARACTERS = 1024;
const SOURCE_MAX_CHARACTERS = 255;
const DEDUP_KEY_MAX_CHARACTERS = 255;

const Credential = z.lazy(() => z.object({ routingKey: z.string() }));
/** The routing key; throws CONNECTION_MISSING if the credential has another form. */
export const routingKeyOf = (access: Pick<Access, 'credential'>): string =>
  credentialOf(access, Credential, 'the pagerduty credential needs "routingKey"').routingKey;

const Accepted = z.lazy(() => z.object({ status: z.literal('success'), dedup_key: z.string() }));
const DedupKey = z.lazy(() => z.string().min(1).max(DEDUP_KEY_MAX_CHARACTERS).describe('identifies the alert'));

const EventInput = z.lazy(() =>
  z.discriminatedUnion('action', [
    z.strictObject({
      action: z.literal('trigger').describe('opens an alert'),
      dedupKey: DedupKey.optional().describe('identifies the alert; without one, the write gets its own alert'),
      summary: z.string().min(1).max(SUMMARY_MAX_CHARACTERS).describe('what is wrong, in one line'),
      source: z.string().min(1).max(SOURCE_MAX_CHARACTERS).describe('the system that is affected'),
      severity: z.enum(['critical', 'error', 'warning', 'info']).describe('how bad it is'),
    }),
    z.strictObject({ action: z.literal('acknowledge').describe('someone works on the alert'), dedupKey: DedupKey }),
    z.strictObject({ action: z.literal('resolve').describe('closes the alert'), dedupKey: DedupKey }),
  ]),
);
type EventInput = z.infer<typeof EventInput>;

/** PagerDuty merges events with the same dedup_key while the alert is open, so a repeat pages nobody again. */
export const sendEvent = operation({
  tool: 'pagerduty.event',
  summary: 'Triggers, acknowledges or resolves an alert.',
  effect: 'natural',
  risk: 'medium',
  reversible: true,
  connection: 'pagerduty',
  input: EventInput,
  output: z.strictObject({ dedupKey: z.string() }),
  content: ['summary', 'source', 'severity'],
  fixed: ['dedupKey'],
  propose: (input, instance) => {
    const alert = input.dedupKey === undefined ? 'new alert' : shortHash(input.dedupKey);
    return {
      target: `pagerduty:${instance}:${alert}`,
      fields: input,
      key: writeKey(['pd', 'event', instance, alert], input),
    };
  },
  async perform(input, { access, mark }) {
    const routingKey = routingKeyOf(access);
    const dedupKey = input.dedupKey ?? mark;
    const { status, body } = await exchange({
      system: 'PagerDuty',
      method: 'POST',
      url: urlAt(access.baseUrl, '/v2/enqueue'),
      headers: {},
      body: { routing_key: routingKey, ...eventOf(input, dedupKey) },
      secrets: [routingKey],
      responseSchema: Accepted,
    });
    return {
      output: { dedupKey: body.dedup_key },
      reversal: reversalOf(input, dedupKey),
      response: { status },
    };
  },
});

function eventOf(input: EventInput, dedup_key: string) {
  if (input.action !== 'trigger') return { event_action: input.action, dedup_key };
  const { summary, source, severity } = input;
  return { event_action: input.action, dedup_key, payload: { summary, source, severity } };
}

function reversalOf(input: EventInput, dedupKey: string): Reversal {
  if (input.action !== 'trigger') return { irreversible: `PagerDuty has no event that undoes ${input.action}` };
  // With a dedup key from the input, the alert may have been open before this write.
  if (input.dedupKey) return { irreversible: 'the alert may have been open before this event; resolve it by its key' };
  return { tool: 'pagerduty.event', input: { action: 'resolve', dedupKey } };
}

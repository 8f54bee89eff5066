import { Problem } from '../entry/http.ts';
import type { GenericSource } from '../pipeline/generic-source.ts';
import type { Trigger } from '../run/run.ts';
import type { Expressions } from '../workflow/expressions/expressions.ts';
import type { Delivery } from './delivery.ts';
import { readGenericDelivery } from './generic-delivery.ts';
import { githubDelivery } from './github-delivery.ts';
import { githubEventIn } from './github-event-in.ts';
import { type Given, requestedTrigger, slotTrigger, type TriggeringSchedule } from './requested-trigger.ts';
import { servicenowDelivery } from './servicenow-delivery.ts';

/** What starts the run of a plan, of a test, or of an example in the documentation. */
export type Sample =
  /** Without an event, the payload must show it. */
  | { source: 'github'; event?: string; payload: unknown }
  | { source: 'servicenow'; payload: unknown }
  | { source: 'generic'; definition: GenericSource; payload: unknown }
  | ({ source: 'api' | 'manual'; person: string; automation: string } & Given)
  | { source: 'schedule'; schedule: TriggeringSchedule; slot: string };

export interface SampleTrigger {
  trigger: Omit<Trigger, 'receivedAt'>;
  /** The external record that the run is about. */
  subject?: string;
}

/** Makes the trigger with the code that makes it for real. */
export async function sampleTrigger(
  scope: { expressions: Expressions; tenant: string },
  sample: Sample,
): Promise<SampleTrigger> {
  switch (sample.source) {
    case 'github': {
      const event = sample.event ?? githubEventIn(sample.payload);
      if (event === undefined) {
        const detail = 'event: the payload does not show which GitHub event it is; name the event, for example push';
        throw new Problem(400, 'BAD_REQUEST', detail);
      }
      return received(githubDelivery({ 'x-github-event': event, 'x-github-delivery': 'sample' }, sample.payload));
    }
    case 'servicenow':
      return received(servicenowDelivery(sample.payload));
    case 'generic':
      return received(await readGenericDelivery(scope, sample.definition, { 'webhook-id': 'sample' }, sample.payload));
    case 'api':
    case 'manual':
      return { trigger: requestedTrigger(sample.source, sample, sample), ...about(sample.subject) };
    case 'schedule':
      return { trigger: slotTrigger(sample.schedule, sample.slot) };
  }
}

const received = ({ source, event, fields, payload, makers, subject }: Delivery): SampleTrigger => ({
  trigger: { source, event, fields, payload, makers },
  ...about(subject),
});

const about = (subject: string | undefined) => (subject === undefined ? {} : { subject });

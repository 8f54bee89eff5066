import { REQUESTED_EVENT, type Trigger } from '../run/run.ts';
import type { StoredSchedule } from '../schedules/schedule.ts';

/** What the person or program gives. */
export interface Given {
  inputs?: Record<string, unknown>;
  title?: string;
  subject?: string;
}

/** The trigger of a run that a person or program requests. They are a maker of its writes. */
export function requestedTrigger(
  source: 'api' | 'manual',
  { person, automation }: { person: string; automation: string },
  { inputs, title, subject }: Given,
): Omit<Trigger, 'receivedAt'> {
  const about = subject !== undefined && { subject };
  return {
    source,
    event: REQUESTED_EVENT,
    fields: { title: title ?? `${automation}, started by ${person}`, actor: person, ...about },
    payload: { ...(title !== undefined && { title }), ...about, inputs: inputs ?? {} },
    makers: [person],
  };
}

/** What the runs of a schedule know of it. */
export type TriggeringSchedule = Pick<StoredSchedule, 'name' | 'title' | 'inputs' | 'makers'>;

/** The trigger of the run of a slot. */
export const slotTrigger = (
  { name, title, inputs, makers }: TriggeringSchedule,
  slot: string,
): Omit<Trigger, 'receivedAt'> => ({
  source: 'schedule',
  event: name,
  fields: { title: title ?? `${name} at ${slot}`, actor: makers[0], schedule: name, slot },
  payload: { schedule: name, slot, inputs: inputs ?? {} },
  makers,
});

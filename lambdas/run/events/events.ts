import type * as z from 'zod';
import { AGENT_EVENTS } from './agent-events.ts';
import { APPROVAL_EVENTS } from './approval-events.ts';
import type { EventKind } from './event-kind.ts';
import { POLICY_EVENTS } from './policy-events.ts';
import { RUN_EVENTS } from './run-events.ts';
import { SESSION_EVENTS } from './session-events.ts';
import { STEP_EVENTS } from './step-events.ts';
import { WRITE_EVENTS } from './write-events.ts';

/** All kinds of events that a commit can have. CONTRIBUTING says how to add one. */
export const EVENT_KINDS = {
  ...RUN_EVENTS,
  ...STEP_EVENTS,
  ...AGENT_EVENTS,
  ...SESSION_EVENTS,
  ...WRITE_EVENTS,
  ...POLICY_EVENTS,
  ...APPROVAL_EVENTS,
};

type EventType = keyof typeof EVENT_KINDS;
export type EventOf<Type extends EventType> = { type: Type } & z.infer<(typeof EVENT_KINDS)[Type]['fields']>;
export type CommitEvent = { [Type in EventType]: EventOf<Type> }[EventType];

/** The definition of an event's kind; undefined for a kind of a later version. */
export const kindOf = ({ type }: { type: string }): EventKind<unknown> | undefined =>
  Object.hasOwn(EVENT_KINDS, type) ? (EVENT_KINDS[type as EventType] as EventKind<unknown>) : undefined;

/** One line of a timeline. `time` formats an ISO time. An event of a later version is shown as it is. */
export function describeEvent({ type, ...event }: CommitEvent, time: (iso: string) => string): string {
  return kindOf({ type })?.text(event, time) ?? `${type} ${JSON.stringify(event)}`;
}

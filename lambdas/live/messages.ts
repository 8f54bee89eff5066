import * as z from 'zod';
import type { LiveEvent } from './live-event.ts';

/** What clients send. docs/live-feed.md describes the protocol. */
const EventId = z.string().max(200);
/** A client knows one last event of the commits, and one for each command whose output it follows. */
const LAST_EVENTS_MAX = 20;

export const SubscribeMessage = z.strictObject({
  action: z.literal('subscribe'),
  /** Without it, the feed of the tenant: the events of all runs, without output. */
  run_id: z.string().min(1).max(100).optional(),
  /** What follows these events is sent again. */
  last_event_id: z.union([EventId.transform((id) => [id]), z.array(EventId).max(LAST_EVENTS_MAX)]).default([]),
});
export type SubscribeMessage = z.output<typeof SubscribeMessage>;

/** What the runtime sends. */
export type ServerMessage =
  | { type: 'events'; events: LiveEvent[] }
  /** There is something new that does not fit into a message: read it over the API. */
  | { type: 'changed'; run_id: string; commit?: number; step_index?: number; lease_version?: number }
  /** The subscription is active. `commit` is the last one of the run when it began. */
  | { type: 'subscribed'; run_id?: string; commit?: number }
  | { type: 'pong' }
  /** To agents. */
  | { type: 'sync' }
  | { type: 'error'; code: 'BAD_REQUEST' | 'NOT_FOUND' | 'RATE_LIMITED' | 'FORBIDDEN'; message: string };

/** API Gateway accepts 128 KB in one message, and counts each 32 KB of it as one. */
export const MESSAGE_MAX_BYTES = 100 * 1024;

const bytesOf = (message: ServerMessage): number => Buffer.byteLength(JSON.stringify(message));

/**
 * Puts events into as few messages as possible. All events of one commit are in one message, so that a client receives a
 * commit completely or not at all. A commit or a chunk that is too large is announced instead.
 */
export function messagesOf(events: readonly LiveEvent[]): ServerMessage[] {
  const messages: ServerMessage[] = [];
  let open: { events: LiveEvent[]; bytes: number } = { events: [], bytes: 0 };
  const close = () => {
    if (open.events.length > 0) messages.push({ type: 'events', events: open.events });
    open = { events: [], bytes: 0 };
  };
  for (const group of groupsOf(events)) {
    const bytes = bytesOf({ type: 'events', events: group });
    if (bytes > MESSAGE_MAX_BYTES) {
      close();
      messages.push(announcementOf(group));
      continue;
    }
    if (open.bytes + bytes > MESSAGE_MAX_BYTES) close();
    open.events.push(...group);
    open.bytes += bytes;
  }
  close();
  return messages;
}

const placeOf = (event: LiveEvent): string => event.id.slice(0, event.id.lastIndexOf(':'));

/** The events of one commit, or one chunk of output. */
function groupsOf(events: readonly LiveEvent[]): LiveEvent[][] {
  const groups: LiveEvent[][] = [];
  for (const event of events) {
    const last = groups.at(-1);
    const belongs = last?.[0] && 'commit' in event.meta && placeOf(last[0]) === placeOf(event);
    if (belongs) last.push(event);
    else groups.push([event]);
  }
  return groups;
}

function announcementOf([event]: LiveEvent[]): ServerMessage {
  if (!event) throw new Error('a group has an event');
  const { run_id, meta } = event;
  return 'commit' in meta
    ? { type: 'changed', run_id, commit: meta.commit }
    : { type: 'changed', run_id, step_index: meta.step_index, lease_version: meta.lease_version };
}

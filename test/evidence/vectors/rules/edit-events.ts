import type { EvidenceDocument } from '../../../../lambdas/evidence/bundle/document.ts';
import { hashOf } from '../../../../lambdas/run/canonical-json.ts';
import type { RecordedEvent } from '../../../../lambdas/run/events/replay-state.ts';

export type Events = RecordedEvent[][];
type Fields = Record<string, unknown>;

/** All events of a type, in order. */
export const all = (events: Events, type: string): RecordedEvent[] =>
  events.flat().filter((event) => event.type === type);

/** One of them, by its position; -1 is the last. */
export function one(events: Events, type: string, which = 0): RecordedEvent {
  const found = all(events, type).at(which);
  if (!found) throw new Error(`there is no ${type}`);
  return found;
}

export const change = (events: Events, type: string, fields: Fields, which = 0): void => {
  Object.assign(one(events, type, which), fields);
};

/** Changes all events of these types. */
export function changeAll(events: Events, types: readonly string[], fields: Fields): void {
  for (const event of events.flat()) if (types.includes(event.type)) Object.assign(event, fields);
}

/** The events of a commit, counted from 1. */
export function commit(events: Events, seq: number): RecordedEvent[] {
  const found = events[seq - 1];
  if (!found) throw new Error(`there is no commit ${seq}`);
  return found;
}

/** Removes the events of these types from the whole run. */
export function remove(events: Events, ...types: string[]): void {
  for (const [index, each] of events.entries()) events[index] = each.filter(({ type }) => !types.includes(type));
}

/** Puts events before the first event of a type in a commit. */
export function insert(events: Events, seq: number, before: string, ...added: RecordedEvent[]): void {
  const each = commit(events, seq);
  const at = each.findIndex(({ type }) => type === before);
  if (at < 0) throw new Error(`commit ${seq} has no ${before}`);
  each.splice(at, 0, ...added);
}

export const moved = (from: string, to: string): RecordedEvent => ({
  type: 'run.status_changed',
  ...{ from, to, initiator: 'system', actor: 'worker' },
});

export function setTime(document: EvidenceDocument, seq: number, at: string): void {
  const found = document.commits[seq - 1];
  if (found) found.at = at;
}

/** Gives decisions the hash of their content, from one of them on; and what names the former hash, too. */
export function rehash(events: Events, { run }: EvidenceDocument, { from = 0, everywhere = true } = {}): void {
  for (const decided of all(events, 'policy.decided').slice(from)) {
    const { tool, target, derived, action, fields, inputDigest: input, policyHash, actionHash: before } = decided;
    const facts = { ...(action as Fields), tool, target, ...(derived !== undefined && { derived }) };
    const now = hashOf({ action: facts, fields, input, policyHash, workflow: run.workflow });
    for (const event of everywhere ? events.flat() : [decided]) if (event.actionHash === before) event.actionHash = now;
  }
}

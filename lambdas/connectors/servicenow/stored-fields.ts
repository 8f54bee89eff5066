import type { Reversal, TouchedState } from '../../run/receipt.ts';
import type { Performance } from '../connector.ts';
import { OutcomeUnknown, TargetRefused } from '../exchange.ts';

/** Fields as ServiceNow shows them; one that does not exist, or that the credential may not read, is missing. */
export type Shown = Record<string, string | undefined>;

interface Stored {
  /** What was written, as it is kept: perhaps in another form. */
  stored: Record<string, string>;
  incomplete?: string;
  reversal: Reversal;
}

/** A field that a repeat left as it found it was set by the first attempt, if at all. */
export function stateBefore({ before, first }: Performance, now: Shown): TouchedState | undefined {
  if (!before || !first) return before;
  const asFound = Object.keys(before).filter((name) => name in first && now[name] === before[name]);
  return { ...before, ...picked(first, asFound) };
}

/**
 * What became of an update. ServiceNow drops without a word what an ACL or a data policy forbids, and keeps a value as it
 * likes: a date gets a time, a business rule sets its own. So a field that is as it was before has not been set, and one
 * that is not has been, whatever it says now.
 */
export function storedBy(sysId: string, asked: Shown, before: TouchedState | undefined, now: Shown): Stored {
  const names = Object.keys(asked);
  const otherwise = names.filter((name) => now[name] !== asked[name]);
  const untold = otherwise.filter((name) => now[name] === undefined || before?.[name] === undefined);
  if (untold.length > 0) {
    throw new OutcomeUnknown(`ServiceNow does not tell whether it has set ${untold.join(', ')}: look at the incident`);
  }
  const stored = picked(now, names);
  if (!before) return { stored, reversal: { irreversible: 'the state before the write could not be read' } };
  const changed = names.filter((name) => now[name] !== before[name]);
  const ignored = otherwise.filter((name) => now[name] === before[name]);
  if (ignored.length > 0 && changed.length === 0) throw new TargetRefused(leftAlone(ignored), { retryable: false });
  return {
    stored,
    ...(ignored.length > 0 && { incomplete: leftAlone(ignored) }),
    reversal: putBack(sysId, changed, before, now),
  };
}

/** Only what this write changed is ours to change back. */
function putBack(sysId: string, changed: string[], before: TouchedState, now: Shown): Reversal {
  if (changed.length === 0) return { irreversible: 'nothing was changed: the fields were as asked already' };
  const input = { sysId, fields: picked(before, changed) };
  return { tool: 'servicenow.incident.update', input, expects: picked(now, changed) };
}

const leftAlone = (names: string[]) =>
  `ServiceNow left ${names.join(', ')} as before: check the ACLs and data policies, and write values as ServiceNow stores them`;

const picked = <Value>(from: Record<string, Value>, names: string[]) =>
  Object.fromEntries(names.map((name) => [name, from[name]])) as Record<string, NonNullable<Value>>;

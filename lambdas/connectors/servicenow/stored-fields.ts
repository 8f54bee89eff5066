import type { Reversal, TouchedState } from '../../run/receipt.ts';
import type { WriteContext } from '../connector.ts';
import { OutcomeUnknown, TargetRefused } from '../target-errors.ts';

/** Fields as ServiceNow returns them. A field that does not exist or that the credential may not read is missing. */
export type ReturnedFields = Record<string, string | undefined>;

interface UpdateResult {
  /** The written fields as ServiceNow stored them, possibly in another form. */
  stored: Record<string, string>;
  incomplete?: string;
  reversal: Reversal;
}

/** If a repeated write did not change a field, the first attempt may have set it: then its earlier value counts. */
export function stateBefore({ before, first }: WriteContext, now: ReturnedFields): TouchedState | undefined {
  if (!before || !first) return before;
  const unchanged = Object.keys(before).filter((name) => name in first && now[name] === before[name]);
  return { ...before, ...picked(first, unchanged) };
}

/**
 * The result of an update. ServiceNow silently skips fields that an ACL or a data policy protects, and may store another
 * value than requested: a date gets a time, a business rule sets its own value. So a field with its earlier value was not
 * set, and a field with any other value was.
 */
export function updateResult(
  undo: { tool: string; input: object },
  requested: ReturnedFields,
  before: TouchedState | undefined,
  now: ReturnedFields,
): UpdateResult {
  const names = Object.keys(requested);
  const different = names.filter((name) => now[name] !== requested[name]);
  const unknown = different.filter((name) => now[name] === undefined || before?.[name] === undefined);
  if (unknown.length > 0) {
    throw new OutcomeUnknown(`ServiceNow does not show whether it has set ${unknown.join(', ')}: check the record`);
  }
  const stored = picked(now, names);
  if (!before) return { stored, reversal: { irreversible: 'the state before the write could not be read' } };
  const changed = names.filter((name) => now[name] !== before[name]);
  const ignored = different.filter((name) => now[name] === before[name]);
  if (ignored.length > 0 && changed.length === 0) throw new TargetRefused(notChanged(ignored), { retryable: false });
  return {
    stored,
    ...(ignored.length > 0 && { incomplete: notChanged(ignored) }),
    reversal: reversalOf(undo, changed, before, now),
  };
}

/** Undoes only what this write changed. */
function reversalOf(
  { tool, input }: { tool: string; input: object },
  changed: string[],
  before: TouchedState,
  now: ReturnedFields,
): Reversal {
  if (changed.length === 0) return { irreversible: 'nothing was changed: the fields already had these values' };
  return { tool, input: { ...input, fields: picked(before, changed) }, expects: picked(now, changed) };
}

const notChanged = (names: string[]) =>
  `ServiceNow did not change ${names.join(', ')}: check the ACLs and data policies, and write values in the form in which ServiceNow stores them`;

const picked = <Value>(from: Record<string, Value>, names: string[]) =>
  Object.fromEntries(names.map((name) => [name, from[name]])) as Record<string, NonNullable<Value>>;

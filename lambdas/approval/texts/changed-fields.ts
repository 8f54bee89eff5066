import { isDeepStrictEqual } from 'node:util';
import type { Names } from '../../connectors/connector.ts';
import { tryParseJson } from '../../entry/parse-json.ts';
import type { Approval } from '../../run/approval.ts';
import { nameAndValue, nameOf } from './known-names.ts';

/** JSON up to this length is on one line. */
const ONE_LINE_MAX_CHARACTERS = 60;

/** Values as text, null for "not set"; `from` is absent if the current value is not known. */
export interface ChangedField {
  name: string;
  from?: string | null;
  to: string | null;
}

/** The written fields, and other fields of the target that the write changes. */
export function changesOf({
  action,
  before = {},
  after = {},
  names,
}: Pick<Approval, 'action' | 'before' | 'after' | 'names'>): {
  written: ChangedField[];
  follows: ChangedField[];
} {
  const fields = action?.fields ?? {};
  const changed = (name: string, to: unknown): ChangedField => ({
    name,
    ...(Object.hasOwn(before, name) && { from: namedValue(names, name, before[name]) }),
    to: namedValue(names, name, to),
  });
  const shown = action?.connector === 'agent' ? Object.entries(fields).flatMap(commandFields) : Object.entries(fields);
  const written = shown.map(([name, value]) => changed(name, value));
  const follows = Object.entries(after)
    .filter(([name, value]) => !Object.hasOwn(fields, name) || !isDeepStrictEqual(fields[name], value))
    .map(([name, value]) => changed(name, value));
  return { written, follows };
}

/**
 * A command exactly as it runs: each argument is a field of its own, so that a line break or a bracket in an argument
 * cannot look like the next one.
 */
function commandFields([name, value]: [string, unknown]): [string, unknown][] {
  if (Array.isArray(value) && value.length > 0) return value.map((each, index) => [`${name}.${index + 1}`, each]);
  if (name !== 'rollback' || typeof value !== 'object' || value === null) return [[name, value]];
  return Object.entries(value).flatMap(([inner, each]) => commandFields([`${name}.${inner}`, each]));
}

function namedValue(names: Names | undefined, field: string, value: unknown): string | null {
  const shown = shownValue(value);
  const name = typeof value === 'string' ? nameOf(names, field, value) : undefined;
  return name === undefined || shown === null ? shown : nameAndValue(name, shown);
}

/** Text unchanged; other values, and text that looks like JSON, as JSON: `true` is not `"true"`. */
export function shownValue(value: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'string')
    return value === '' || tryParseJson(value) !== undefined ? JSON.stringify(value) : value;
  const short = JSON.stringify(value);
  return short.length > ONE_LINE_MAX_CHARACTERS ? JSON.stringify(value, null, 2) : short;
}

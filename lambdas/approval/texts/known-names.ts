import type { Names } from '../../connectors/connector.ts';

/** What the target calls a value of a field, if the approval or plan says so. */
export const nameOf = (names: Names | undefined, field: string, value: unknown): string | undefined =>
  namesOf(names, field).find(([known]) => known === String(value))?.[1];

/** The values of a field that have a name, and their names. */
export const namesOf = (names: Names | undefined, field: string): [value: string, name: string][] =>
  names && Object.hasOwn(names, field) ? Object.entries(names[field] ?? {}) : [];

/** `Database (287ebd7da9fe198100f92cc8d1d2154e)`: the name for people, and last the value that is written. */
export const nameAndValue = (name: string, value: string): string => `${name} (${value})`;

/** The value behind a name, or behind a name with its value. Nothing if no value or several have this name. */
export function valueNamed(names: Names | undefined, field: string, given: string): string | undefined {
  const wanted = given.trim().toLowerCase();
  const [found, ...others] = namesOf(names, field).filter(([value, name]) =>
    [name, nameAndValue(name, value)].some((each) => each.toLowerCase() === wanted),
  );
  return others.length === 0 ? found?.[0] : undefined;
}

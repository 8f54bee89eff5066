import type * as z from 'zod';
import { isConstant } from '../expressions/template.ts';
import type { Problem } from './check-expressions.ts';

/** Stands for what an expression will give: no schema but one that takes anything takes it, and nobody can write it. */
const ANY_VALUE = Symbol('the value of an expression');

/** What is wrong with a tool's input whatever its expressions will give. */
export const inputProblems = (schema: z.ZodType, template: unknown): Problem[] =>
  schemaProblems(schema, withAnyValues(template));

/** What a schema says of a value that somebody wrote, in words for whoever wrote it. */
export function schemaProblems(schema: z.ZodType, value: unknown): Problem[] {
  const parsed = parse(schema, value);
  return parsed ? problemsOf(parsed.issues, value, []) : [];
}

/** A refinement may choke on a value that is not there yet; the run will check it when it is. */
function parse(schema: z.ZodType, value: unknown): z.ZodError | undefined {
  try {
    return schema.safeParse(value, { error: inWords }).error;
  } catch {
    return undefined;
  }
}

function withAnyValues(template: unknown): unknown {
  if (typeof template === 'string') return isConstant(template) ? template : ANY_VALUE;
  if (Array.isArray(template)) return template.map(withAnyValues);
  if (template === null || typeof template !== 'object') return template;
  return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, withAnyValues(value)]));
}

/** Where a schema has no words of its own. */
function inWords(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type': {
      const wanted = KINDS[issue.expected] ?? issue.expected;
      return issue.input === undefined || issue.input === null ? `is missing: ${wanted}` : `must be ${wanted}`;
    }
    case 'invalid_value':
      return oneOf(issue.values);
    case 'invalid_union':
      return Array.isArray(issue.options) ? oneOf(issue.options) : undefined;
    case 'invalid_format':
      return FORMATS[issue.format];
    case 'too_small':
      return sized(issue.origin, issue.inclusive === false ? 'more than' : 'at least', Number(issue.minimum));
    case 'too_big':
      return sized(issue.origin, issue.inclusive === false ? 'less than' : 'at most', Number(issue.maximum));
    default:
      return undefined;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: '"name: value" pairs',
  record: '"name: value" pairs',
};

const FORMATS: Readonly<Record<string, string>> = {
  datetime: 'must be a time: "2026-03-02T09:00:00Z"',
  url: 'must be an address: "https://..."',
};

const oneOf = (values: readonly unknown[]) => `must be ${values.map(String).join(' or ')}`;

const COUNTED: Readonly<Record<string, string>> = { array: 'item', string: 'character' };

function sized(origin: string, bound: string, count: number): string {
  const unit = COUNTED[origin];
  return unit ? `must have ${bound} ${count} ${unit}${count === 1 ? '' : 's'}` : `must be ${bound} ${count}`;
}

type Issue = z.core.$ZodIssue;

/** `at` is where the input of these issues stands in the whole; paths of a union's issues start there. */
function problemsOf(issues: readonly Issue[], input: unknown, at: PropertyKey[]): Problem[] {
  return issues.flatMap((issue) => {
    const path = [...at, ...issue.path];
    const value = valueAt(input, path);
    // A name is known, whatever its value will be.
    if (issue.code !== 'invalid_key' && (value === ANY_VALUE || (issue.code === 'custom' && holdsAny(value))))
      return [];
    if (issue.code === 'invalid_union' && issue.errors.length > 0) {
      return closest(
        issue.errors.map((errors) => problemsOf(errors, input, path)),
        path,
      );
    }
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({ path: [...path, key], message: unknownField(key) }));
    }
    const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
    return [{ path, message }];
  });
}

const unknownField = (name: string) => `"${name}" is no field here; correct its name or take it out`;

/** Of several shapes, the one that is wrong in the fewest ways; where they are equally wrong, what each would take. */
function closest(options: Problem[][], at: PropertyKey[]): Problem[] {
  const fewest = Math.min(...options.map((problems) => problems.length));
  const best = options.filter((problems) => problems.length === fewest);
  if (fewest !== 1) return best[0] ?? [];
  const ways = best.flat().map(({ path, message }) => `${path.slice(at.length).join('.')} ${message}`.trim());
  return [{ path: at, message: [...new Set(ways)].join(', or ') }];
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      value !== null && typeof value === 'object' ? (value as Record<PropertyKey, unknown>)[key] : value,
    input,
  );
}

function holdsAny(value: unknown): boolean {
  if (value === ANY_VALUE) return true;
  return value !== null && typeof value === 'object' && Object.values(value).some(holdsAny);
}

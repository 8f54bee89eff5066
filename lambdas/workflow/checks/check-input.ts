import type * as z from 'zod';
import { didYouMean } from '../../entry/did-you-mean.ts';
import { isConstant } from '../expressions/template.ts';
import type { Problem } from './check-expressions.ts';

/** Stands for the unknown value of an expression. Only a schema that accepts anything accepts it. */
const ANY_VALUE = Symbol('the value of an expression');

/** Finds mistakes in a tool's input that no value of its expressions can fix. */
export const inputProblems = (schema: z.ZodType, template: unknown): Problem[] =>
  schemaProblems(schema, withAnyValues(template));

/** Converts schema errors to messages for the author of the value. */
export function schemaProblems(schema: z.ZodType, value: unknown): Problem[] {
  const parsed = parse(schema, value);
  return parsed ? problemsOf(schema, parsed.issues, value, []) : [];
}

/** A refinement may throw on an unknown value; the run checks it later. */
function parse(schema: z.ZodType, value: unknown): z.ZodError | undefined {
  try {
    return schema.safeParse(value, { error: messageOf }).error;
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

/** For schemas without their own message. */
function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type': {
      const wanted = KINDS[issue.expected] ?? issue.expected;
      return issue.input === undefined || issue.input === null ? `is missing; expected ${wanted}` : `must be ${wanted}`;
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
  string: 'text',
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

/** `at` is the path of the input within the whole; paths of a union's issues start there. */
function problemsOf(schema: z.ZodType, issues: readonly Issue[], input: unknown, at: PropertyKey[]): Problem[] {
  return issues.flatMap((issue) => {
    const path = [...at, ...issue.path];
    const value = valueAt(input, path);
    // The name of a field is known even if its value is not.
    if (issue.code !== 'invalid_key' && (value === ANY_VALUE || (issue.code === 'custom' && holdsAny(value))))
      return [];
    if (issue.code === 'invalid_union' && issue.errors.length > 0) {
      return closest(
        issue.errors.map((errors) => problemsOf(schema, errors, input, path)),
        path,
      );
    }
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({ path: [...path, key], message: unknownField(key, fieldsAt(schema, path)) }));
    }
    const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
    return [{ path, message }];
  });
}

function unknownField(name: string, allKnown: readonly string[]): string {
  // In a union, another option may have the field.
  const known = allKnown.filter((each) => each !== name);
  const all = known.length > 0 ? `; fields: ${known.join(', ')}` : '; remove it';
  return `unknown field "${name}"${didYouMean(name, known) || all}`;
}

/** The names of the fields that a schema allows at a path. */
function fieldsAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const [key, ...rest] = path;
  switch (def.type) {
    case 'object': {
      if (key === undefined) return Object.keys(def.shape);
      const field = def.shape[String(key)];
      return field ? fieldsAt(field, rest) : [];
    }
    case 'array':
      return fieldsAt(def.element, rest);
    case 'record':
      return fieldsAt(def.valueType, rest);
    case 'union':
      return [...new Set(def.options.flatMap((option) => fieldsAt(option, path)))];
    case 'pipe':
      return fieldsAt(def.in, path);
    case 'lazy':
      return fieldsAt(def.getter(), path);
    default:
      return 'innerType' in def ? fieldsAt(def.innerType as z.core.$ZodType, path) : [];
  }
}

/** The problems of the union option with the fewest; if several have one problem each, all of them as alternatives. */
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

import type * as z from 'zod';
import type { Problem } from './check-expressions.ts';
import { expressionsIn } from './expressions.ts';

/** Stands for what an expression will give: no schema but one that takes anything takes it, and nobody can write it. */
const ANY_VALUE = Symbol('the value of an expression');

/** What is wrong with a tool's input whatever its expressions will give. */
export function inputProblems(schema: z.ZodType, template: unknown): Problem[] {
  const input = withAnyValues(template);
  const parsed = parse(schema, input);
  return parsed ? problemsOf(parsed.issues, input, []) : [];
}

/** A refinement may choke on a value that is not there yet; the run will check it when it is. */
function parse(schema: z.ZodType, input: unknown): z.ZodError | undefined {
  try {
    return schema.safeParse(input).error;
  } catch {
    return undefined;
  }
}

function withAnyValues(template: unknown): unknown {
  if (typeof template === 'string') return expressionsIn(template).length > 0 ? ANY_VALUE : template;
  if (Array.isArray(template)) return template.map(withAnyValues);
  if (template === null || typeof template !== 'object') return template;
  return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, withAnyValues(value)]));
}

type Issue = z.core.$ZodIssue;

/** `at` is where the input of these issues stands in the whole; paths of a union's issues start there. */
function problemsOf(issues: readonly Issue[], input: unknown, at: PropertyKey[]): Problem[] {
  return issues.flatMap((issue) => {
    const path = [...at, ...issue.path];
    const value = valueAt(input, path);
    if (value === ANY_VALUE || (issue.code === 'custom' && holdsAny(value))) return [];
    if (issue.code === 'invalid_union' && issue.errors.length > 0) {
      return closest(
        issue.errors.map((errors) => problemsOf(errors, input, path)),
        path,
      );
    }
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({ path: [...path, key], message: unknownField(key) }));
    }
    if (issue.code === 'invalid_type' && value === undefined)
      return [{ path, message: `is missing: ${issue.expected}` }];
    const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
    return [{ path, message }];
  });
}

export const unknownField = (name: string) => `"${name}" is no field here; correct its name or take it out`;

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

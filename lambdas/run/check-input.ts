import type * as z from 'zod';
import { CountersignError } from './errors.ts';

/** Names of fields and columns. Any other name may be text of a payload. */
const PLAIN_NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;

/** Parses the input of a tool, or throws INPUT_INVALID. */
export function parsedInput<Schema extends z.ZodType>(schema: Schema, tool: string, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new CountersignError('INPUT_INVALID', `${tool}: ${inputProblems(parsed.error)}`);
}

/** Says what is wrong without quoting the input: the run stores the message, and names may come from a payload. */
export function inputProblems({ issues }: z.ZodError): string {
  return issues
    .map((issue) => {
      const message = issueText(issue);
      return issue.path.length === 0 ? message : `${issue.path.map(plain).join('.')}: ${message}`;
    })
    .join('; ');
}

function issueText(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') return `has no field ${issue.keys.map(plain).join(', ')}`;
  // The reason for an invalid key is in a nested issue.
  return (issue.code === 'invalid_key' && issue.issues[0]?.message) || issue.message;
}

const plain = (part: PropertyKey): string => {
  if (typeof part === 'number') return String(part);
  return PLAIN_NAME.test(String(part)) ? String(part) : '(a name)';
};

import type * as z from 'zod';

/** A name as inputs and columns have; anything else in a path is somebody's text. */
const PLAIN_NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;

/** What is wrong with an input, without a word of it: the message is kept on the run, and its names may come from a payload. */
export function inputFlaws({ issues }: z.ZodError): string {
  return issues
    .map((issue) => {
      const message =
        issue.code === 'unrecognized_keys' ? `knows no ${issue.keys.map(plain).join(', ')}` : issue.message;
      return issue.path.length === 0 ? message : `${issue.path.map(plain).join('.')}: ${message}`;
    })
    .join('; ');
}

const plain = (part: PropertyKey): string => {
  if (typeof part === 'number') return String(part);
  return PLAIN_NAME.test(String(part)) ? String(part) : '(a name)';
};

import * as z from 'zod';
import type { Reversal, TouchedState } from '../../run/receipt.ts';
import { Repository } from './client.ts';

/** An issue or a pull request: GitHub numbers them together. */
export const IssueOf = {
  ...Repository,
  number: z.int().positive().describe('the number of the issue or pull request'),
};

interface Issue {
  owner: string;
  repo: string;
  number: number;
}

export const issueName = ({ owner, repo, number }: Issue) => `${owner}/${repo}#${number}`;
export const issuePath = ({ owner, repo, number }: Issue) => `/repos/${owner}/${repo}/issues/${number}`;

/** For each name, whether the issue has it. GitHub compares labels and logins without regard to case. */
export function presenceOf(names: readonly string[], onIssue: readonly string[]): TouchedState {
  const present = new Set(onIssue.map((name) => name.toLowerCase()));
  return Object.fromEntries(names.map((name) => [name, present.has(name.toLowerCase())]));
}

export const allOf = (names: readonly string[], present: boolean): TouchedState =>
  Object.fromEntries(names.map((name) => [name, present]));

/** Undoes only what this write changed. `present` is true if the write added the names. */
export function reversalOf<Key extends 'labels' | 'assignees'>(
  write: { tool: string; input: Issue; key: Key; names: readonly string[]; present: boolean },
  before: TouchedState | undefined,
): Reversal {
  const { tool, input, key, names, present } = write;
  if (!before) return { irreversible: `the ${key} before the write could not be read` };
  const changed = names.filter((name) => before[name] === !present);
  if (changed.length === 0) return { irreversible: `nothing was changed: the ${key} were already as requested` };
  return { tool, input: { ...input, [key]: changed }, expects: allOf(changed, present) };
}

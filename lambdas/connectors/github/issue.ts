import * as z from 'zod';
import type { Reversal, TouchedState } from '../../run/receipt.ts';
import { Repository } from './client.ts';

/** An issue or a pull request: GitHub numbers them together. */
export const IssueOf = { ...Repository, number: z.int().positive() };

interface Issue {
  owner: string;
  repo: string;
  number: number;
}

export const issueName = ({ owner, repo, number }: Issue) => `${owner}/${repo}#${number}`;
export const issuePath = ({ owner, repo, number }: Issue) => `/repos/${owner}/${repo}/issues/${number}`;

/** Which of these names the issue carries. GitHub tells labels and logins apart without regard to case. */
export function carried(names: readonly string[], by: readonly string[]): TouchedState {
  const there = new Set(by.map((name) => name.toLowerCase()));
  return Object.fromEntries(names.map((name) => [name, there.has(name.toLowerCase())]));
}

/** All of them, or none. */
export const allOf = (names: readonly string[], present: boolean): TouchedState =>
  Object.fromEntries(names.map((name) => [name, present]));

/** Only what this write changed is ours to change back. `present` is what the write left. */
export function changeBack<Key extends 'labels' | 'assignees'>(
  write: { tool: string; input: Issue; key: Key; names: readonly string[]; present: boolean },
  before: TouchedState | undefined,
): Reversal {
  const { tool, input, key, names, present } = write;
  if (!before) return { irreversible: `the ${key} before the write could not be read` };
  const changed = names.filter((name) => before[name] === !present);
  if (changed.length === 0) return { irreversible: `nothing was changed: the ${key} were as asked already` };
  return { tool, input: { ...input, [key]: changed }, expects: allOf(changed, present) };
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMMAND_NAMES } from '../../bin/commands/commands.ts';

const textOf = (path: string) => readFileSync(join(import.meta.dirname, '..', '..', path), 'utf8');
/** The RUNBOOK and the procedures that it names. */
const INSTRUCTIONS = `${textOf('RUNBOOK.md')}\n${textOf('docs/administration.md')}`;

/** Instructions to change the table: the CLI of AWS, and sentences about rows. */
const EDITS_A_ROW = [
  /\baws dynamodb\b/i,
  /\b(?:put|update|delete|batch-write|transact-write)-items?\b/i,
  /\b(?:write|delete|edit|correct|change|remove|insert|add|put|fix|replace|set)s?\b(?:\s+[^\s.:;|]+){0,4}?\s+rows?\b/i,
  /\brows?\b[^.:;|]{0,40}\bby hand\b/i,
  /\binto the (?:run )?table\b/i,
];

/** The sections of both documents, by heading. */
const sections = INSTRUCTIONS.split(/^## /m)
  .slice(1)
  .map((section) => ({ heading: section.slice(0, section.indexOf('\n')), text: section.replace(/\s+/g, ' ') }));

const editsIn = (text: string) => EDITS_A_ROW.flatMap((pattern) => pattern.exec(text)?.[0] ?? []);

describe('RUNBOOK and docs/administration.md', () => {
  it.each(sections)('"$heading" has no instruction that edits a row of the table by hand', ({ text }) => {
    expect(editsIn(text)).toEqual([]);
  });

  it('names only commands that exist', () => {
    const named = [...INSTRUCTIONS.replace(/\s+/g, ' ').matchAll(/countersign ([a-z-]+(?: [a-z-]+)?)/g)].map(
      ([, words = '']) => words,
    );
    const unknown = named.filter(
      (words) => !COMMAND_NAMES.some((name) => name === words || name === words.split(' ')[0]),
    );
    expect(named.length).toBeGreaterThan(20);
    expect(unknown).toEqual([]);
  });
});

it.each([
  'then delete the row `RECEIPT#<tenant>#<key>` / `RECEIPT`.',
  'Deploy a version that knows it, or correct the row.',
  'fill in the secrets and write these rows into the table',
  "aws dynamodb put-item --table-name <table> --item '{}'",
  'two owners, whom the operator writes into the table',
  'A version wrote it, or the row was changed by hand.',
])('the check would find: %s', (text) => {
  expect(editsIn(text)).not.toEqual([]);
});

it.each([
  'more rows are due than the sweeper can send',
  'rows of a run, or an object under its name, were written by somebody else',
  'find out who deleted rows',
])('the check accepts: %s', (text) => {
  expect(editsIn(text)).toEqual([]);
});

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { FORMAT_FILE, withEventTables } from '../../docs/event-tables.ts';
import { SENTENCE_FIELDS } from '../../lambdas/run/events/digest-sentences.ts';
import { describeEvent, EVENT_KINDS, kindOf } from '../../lambdas/run/events/events.ts';

const KINDS = Object.entries(EVENT_KINDS);

/** Every field at any depth, by name. */
function fieldsIn(schema: z.ZodType): [name: string, schema: z.ZodType][] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodReadonly) return fieldsIn(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodArray) return fieldsIn(schema.element as z.ZodType);
  if (schema instanceof z.ZodDiscriminatedUnion) return schema.options.flatMap((each) => fieldsIn(each as z.ZodType));
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape).flatMap(([name, each]) => [[name, bare(each)], ...fieldsIn(each)]);
}

const bare = (schema: z.ZodType): z.ZodType =>
  schema instanceof z.ZodOptional ? (schema.unwrap() as z.ZodType) : schema;

describe('the kinds of events', () => {
  it('are documented as they are defined; `npm run docs` updates docs/evidence-format.md', () => {
    const document = readFileSync(FORMAT_FILE, 'utf8');
    expect(document).toBe(withEventTables(document));
    for (const [type] of KINDS) expect(document).toContain(`| \`${type}\` |`);
  });

  it.each(KINDS)('%s has sentences only in fields that evidence shows as digests', (_type, { fields }) => {
    for (const [name, schema] of fieldsIn(fields)) {
      expect([name, schema.meta()?.sentence === true]).toEqual([name, SENTENCE_FIELDS.includes(name)]);
    }
  });

  it.each(KINDS)('%s documents what its replay proves', (_type, kind) => {
    expect('proves' in kind).toBe('replay' in kind);
  });
});

it('an event of a later version is shown as it is, and changes no replay', () => {
  const event = { type: 'run.teleported', to: 'Mars' };
  expect(kindOf(event)).toBeUndefined();
  expect(describeEvent(event as never, String)).toBe('run.teleported {"to":"Mars"}');
  expect(kindOf({ type: 'constructor' })).toBeUndefined();
});

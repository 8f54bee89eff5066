import * as z from 'zod';
import { type Access, shortHash, type WriteContext } from '../connector.ts';
import { TargetRefused } from '../target-errors.ts';
import { servicenow } from './client.ts';
import { type ReturnedFields, stateBefore, updateResult } from './stored-fields.ts';

/** What the tools for incidents and for records of other tables share. */

const FIELDS_READ_MAX = 50;
/** Later steps need groups, states and names; long texts would make the output too large to store. */
const OUTPUT_VALUE_MAX_CHARACTERS = 255;
/** They can only be added to. */
const JOURNAL_FIELDS = ['work_notes', 'comments'];

export const SysId = z.lazy(() =>
  z
    .string()
    .regex(/^[0-9a-f]{32}$/, 'a ServiceNow sys_id is 32 hexadecimal digits')
    .describe('the sys_id of the record'),
);
export const FieldName = z.string().regex(/^[a-z0-9_]+$/, 'a column of the table');
export const FieldNames = z.lazy(() => z.array(FieldName).min(1).max(FIELDS_READ_MAX).describe('the columns to read'));
const SettableField = FieldName.refine(
  (name) => !JOURNAL_FIELDS.includes(name),
  'work notes and comments cannot be set, only added: use servicenow.incident.add_work_note',
);
export const SettableFields = z.lazy(() =>
  z
    .record(SettableField, z.union([z.string(), z.number(), z.boolean()]))
    .refine((fields) => Object.keys(fields).length > 0, 'name at least one field to set')
    .transform(withoutMarkup)
    .describe('the columns to set, with their values'),
);

/** Columns of a task that name, assign or notify people. */
export const RECIPIENTS = [
  ...'assigned_to assignment_group caller_id opened_by resolved_by closed_by'.split(' '),
  ...'additional_assignee_list group_list watch_list work_notes_list'.split(' '),
].map((column) => `fields.${column}`);

/** ServiceNow returns every value as text; a reference is an object with a value. */
const Value = z.lazy(() => z.union([z.string(), z.object({ value: z.string() }).transform(({ value }) => value)]));
export const TableRecord = z.lazy(() => z.record(z.string(), Value));
export const RecordResponse = z.lazy(() => z.object({ result: TableRecord }));

/** The markup of journal fields: `[code]` starts HTML, `@[` mentions a user. A space after the bracket disables both. */
const MARKUP = /\[(?=\/?code\])|(?<=@)\[/gi;
export const plainJournalText = (text: string): string => text.replace(MARKUP, (bracket) => `${bracket} `);

/** A column that a customer has added may be a journal, so its text is written as for a work note. */
const isCustom = (name: string): boolean => /^[ux]_/.test(name);

function withoutMarkup<Value>(fields: Record<string, Value>): Record<string, Value> {
  const plain = ([name, value]: [string, Value]) =>
    [name, isCustom(name) && typeof value === 'string' ? plainJournalText(value) : value] as [string, Value];
  return Object.fromEntries(Object.entries(fields).map(plain));
}

export interface RecordRef {
  table: string;
  sysId: string;
}

/** The response contains only these fields. */
export const recordPath = ({ table, sysId }: RecordRef, fields: string[]) =>
  `${table}/${sysId}?sysparm_fields=${fields.join(',')}`;
export const recordTarget = ({ table, sysId }: RecordRef, instance: string) =>
  `servicenow:${instance}:${table}:${sysId}`;

/** Throws if a field is missing in the response: its value is unknown, not empty. */
export async function readFields(access: Access, record: RecordRef, names: string[]) {
  const path = recordPath(record, names);
  const { status, body } = await servicenow(access, { method: 'GET', path, responseSchema: RecordResponse });
  return { status, values: shownFields(body.result, names) };
}

export function shownFields(row: ReturnedFields, names: readonly string[]): Record<string, string> {
  const hidden = names.filter((name) => !Object.hasOwn(row, name));
  if (hidden.length > 0) {
    const message = `ServiceNow does not show ${hidden.join(', ')}: check the name, and that the credential may read it`;
    throw new TargetRefused(message, { retryable: false });
  }
  return Object.fromEntries(names.map((name) => [name, row[name] ?? '']));
}

/** Sets fields of a record. `tool` and `undo` make the input of the undo. */
export async function updateRecord(
  record: RecordRef,
  fields: Record<string, unknown>,
  context: WriteContext,
  undo: { tool: string; input: object },
) {
  const path = recordPath(record, ['number', 'sys_mod_count', ...Object.keys(fields)]);
  const call = { method: 'PATCH', path, body: fields, responseSchema: RecordResponse } as const;
  const { status, body } = await servicenow(context.access, call);
  const now: ReturnedFields = body.result;
  const before = stateBefore(context, now);
  const { stored, incomplete, reversal } = updateResult(undo, asText(fields), before, now);
  return {
    output: { number: now.number ?? '', modCount: now.sys_mod_count ?? '', fields: shortValues(stored) },
    ...(before && { before }),
    ...(incomplete && { incomplete }),
    reversal,
    response: { status },
  };
}

export const shortValues = (stored: Record<string, string>) =>
  Object.fromEntries(Object.entries(stored).filter(([, value]) => value.length <= OUTPUT_VALUE_MAX_CHARACTERS));

/** ServiceNow returns every written value as text. */
export const asText = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));

/** The tables of the `record` tools are named on the connection, because a credential often may read and write more. */
export function assertAllowed({ allowedTables = [] }: Access, table: string): void {
  if (allowedTables.includes(table)) return;
  const message = `the table ${table} is not in allowedTables of the servicenow connection; an admin can add it`;
  throw new TargetRefused(message, { retryable: false });
}

/** Names a list in targets. */
export const listTarget = (table: string, instance: string, query: string) =>
  `servicenow:${instance}:${table}:list:${shortHash(query)}`;

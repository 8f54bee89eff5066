import * as z from 'zod';
import { type Access, Markdown, operation, writeKey } from '../connector.ts';
import { OutcomeUnknown, TargetRefused } from '../target-errors.ts';
import { servicenow } from './client.ts';
import { findNote, markLine, noteNotShown } from './find-work-note.ts';
import { type ReturnedFields, stateBefore, updateResult } from './stored-fields.ts';

const JOURNAL_FIELDS = ['work_notes', 'comments'];
const WORK_NOTE_MAX_CHARACTERS = 4000;
const FIELDS_READ_MAX = 50;

const SysId = z.string().regex(/^[0-9a-f]{32}$/, 'a ServiceNow sys_id is 32 hexadecimal digits');
const FieldName = z.string().regex(/^[a-z0-9_]+$/, 'a column of the incident table');
const SettableField = FieldName.refine(
  (name) => !JOURNAL_FIELDS.includes(name),
  'work notes and comments cannot be set, only added: use servicenow.incident.add_work_note',
);

/** ServiceNow returns every value as text; a reference is an object with a value. */
const Value = z.union([z.string(), z.object({ value: z.string() }).transform(({ value }) => value)]);
const RecordResponse = z.object({ result: z.record(z.string(), Value) });

/** The response contains only these fields. */
const incidentPath = (sysId: string, fields: string[]) => `incident/${sysId}?sysparm_fields=${fields.join(',')}`;
const targetOf = (sysId: string, instance: string) => `servicenow:${instance}:incident:${sysId}`;

const GetInput = z.strictObject({ sysId: SysId, fields: z.array(FieldName).min(1).max(FIELDS_READ_MAX) });

export const getIncident = operation({
  tool: 'servicenow.incident.get',
  summary: 'Reads fields of an incident.',
  effect: 'read',
  risk: 'low',
  reversible: false,
  connection: 'servicenow',
  input: GetInput,
  output: z.strictObject({ sysId: SysId, fields: z.record(z.string(), z.string()) }),
  propose: ({ sysId, fields }, instance) => ({
    target: targetOf(sysId, instance),
    // Policy may permit reading some fields and not others.
    fields: { fields: [...fields] },
    key: writeKey(['sn', 'incident', 'get', instance, sysId], [...fields].sort()),
  }),
  async perform({ sysId, fields }, { access }) {
    const { status, values } = await readFields(access, sysId, fields);
    const reversal = { irreversible: 'nothing was changed' };
    return { output: { sysId, fields: values }, reversal, response: { status } };
  },
});

/** Columns of an incident that assign or notify people. */
const RECIPIENTS =
  `assigned_to assignment_group caller_id additional_assignee_list group_list watch_list work_notes_list`
    .split(' ')
    .map((column) => `fields.${column}`);

const UpdateInput = z.strictObject({
  sysId: SysId,
  fields: z
    .record(SettableField, z.union([z.string(), z.number(), z.boolean()]))
    .refine((fields) => Object.keys(fields).length > 0, 'name at least one field to set'),
});

export const updateIncident = operation({
  tool: 'servicenow.incident.update',
  summary: 'Sets fields of an incident.',
  effect: 'natural',
  risk: 'medium',
  reversible: true,
  connection: 'servicenow',
  input: UpdateInput,
  output: z.strictObject({
    sysId: SysId,
    number: z.string(),
    modCount: z.string(),
    fields: z.record(z.string(), z.string()).describe('the written values of up to 255 characters, as stored'),
  }),
  content: ['fields'],
  recipients: RECIPIENTS,
  propose: ({ sysId, fields }, instance) => ({
    target: targetOf(sysId, instance),
    fields,
    after: asText(fields),
    key: writeKey(['sn', 'incident', 'update', instance, sysId], fields),
  }),
  edited: ({ sysId, fields }, changed) => ({ sysId, fields: { ...fields, ...changed } }),
  before: async ({ sysId, fields }, access) => (await readFields(access, sysId, Object.keys(fields))).values,
  async perform({ sysId, fields }, context) {
    const path = incidentPath(sysId, ['number', 'sys_mod_count', ...Object.keys(fields)]);
    const call = { method: 'PATCH', path, body: fields, responseSchema: RecordResponse } as const;
    const { status, body } = await servicenow(context.access, call);
    const now: ReturnedFields = body.result;
    const before = stateBefore(context, now);
    const { stored, incomplete, reversal } = updateResult(sysId, asText(fields), before, now);
    return {
      output: { sysId, number: now.number ?? '', modCount: now.sys_mod_count ?? '', fields: shortValues(stored) },
      ...(before && { before }),
      ...(incomplete && { incomplete }),
      reversal,
      response: { status },
    };
  },
});

/** Later steps need groups, states and names; long texts would make the output too large to store. */
const OUTPUT_VALUE_MAX_CHARACTERS = 255;

const shortValues = (stored: Record<string, string>) =>
  Object.fromEntries(Object.entries(stored).filter(([, value]) => value.length <= OUTPUT_VALUE_MAX_CHARACTERS));

const WorkNoteInput = z
  .strictObject({ sysId: SysId, note: z.string().min(1).max(WORK_NOTE_MAX_CHARACTERS), markdown: Markdown })
  .refine((input) => written(input).length <= WORK_NOTE_MAX_CHARACTERS, {
    path: ['note'],
    message: `is longer than ${WORK_NOTE_MAX_CHARACTERS} characters once its markup is escaped; shorten it`,
  });

/** The markup of journal fields: `[code]` starts HTML, `@[` mentions a user. A space after the bracket disables both. */
const MARKUP = /\[(?=\/?code\])|(?<=@)\[/gi;

const written = ({ note, markdown }: { note: string; markdown?: boolean }) =>
  markdown ? note : note.replace(MARKUP, (bracket) => `${bracket} `);

export const addWorkNote = operation({
  tool: 'servicenow.incident.add_work_note',
  summary: 'Adds a work note to an incident.',
  effect: 'probe',
  risk: 'low',
  reversible: false,
  connection: 'servicenow',
  input: WorkNoteInput,
  output: z.strictObject({ sysId: SysId }),
  content: ['note'],
  returnsOnlyIds: true,
  markdownField: 'note',
  propose: (input, instance) => ({
    target: targetOf(input.sysId, instance),
    fields: { note: written(input) },
    key: writeKey(['sn', 'incident', 'work_note', instance, input.sysId], { note: written(input) }),
  }),
  // People edit the escaped text; escaping it again would change what they approve.
  edited: (input, fields) => ({ ...input, ...fields, markdown: true }),
  async perform(input, { access, mark }) {
    const { sysId } = input;
    const { status } = await servicenow(access, {
      method: 'PATCH',
      path: incidentPath(sysId, ['sys_id']),
      body: { work_notes: `${written(input)}\n${markLine(mark)}` },
      responseSchema: RecordResponse,
    });
    // The response is the same if an ACL has dropped the note.
    const note = await findNote(access, sysId, mark).catch(unreadable);
    if (note.kind === 'absent') throw new TargetRefused(NOTE_DROPPED, { retryable: false });
    if (note.kind === 'undecided') throw noteNotShown();
    return { output: { sysId }, reversal: NOTES_STAY, response: { status, ...entryOf(note) } };
  },
  async probe({ sysId }, { access, mark }) {
    const note = await findNote(access, sysId, mark);
    if (note.kind === 'absent') return undefined;
    if (note.kind === 'undecided') throw noteNotShown();
    return { output: { sysId }, reversal: NOTES_STAY, response: entryOf(note), recovered: true };
  },
});

const NOTE_DROPPED =
  'ServiceNow did not add the note: check that the credential may write work_notes (ACLs, data policies)';

const entryOf = ({ journalEntry }: { journalEntry?: string }): Record<string, string> =>
  journalEntry ? { journalEntry } : {};

/** The note was sent, so a failed read leaves the outcome unknown. */
function unreadable(error: unknown): never {
  if (!(error instanceof TargetRefused)) throw error;
  throw new OutcomeUnknown(`the note was sent, but reading it failed: ${error.message}`, error);
}

const NOTES_STAY = { irreversible: 'a work note cannot be removed, only corrected by another note' };

/** Throws if a field is missing in the response: its value is unknown, not empty. */
async function readFields(access: Access, sysId: string, names: string[]) {
  const path = incidentPath(sysId, names);
  const { status, body } = await servicenow(access, { method: 'GET', path, responseSchema: RecordResponse });
  const hidden = names.filter((name) => !Object.hasOwn(body.result, name));
  if (hidden.length > 0) {
    const message = `ServiceNow does not show ${hidden.join(', ')}: check the name, and that the credential may read it`;
    throw new TargetRefused(message, { retryable: false });
  }
  return { status, values: Object.fromEntries(names.map((name) => [name, body.result[name]])) };
}

/** ServiceNow returns every written value as text. */
const asText = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));

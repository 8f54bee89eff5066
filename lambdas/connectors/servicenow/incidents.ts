import * as z from 'zod';
import { type Access, Markdown, operation, writeKey } from '../connector.ts';
import { OutcomeUnknown, TargetRefused } from '../exchange.ts';
import { servicenow } from './client.ts';
import { findNote, markLine, noteNotShown } from './find-work-note.ts';
import { type Shown, stateBefore, storedBy } from './stored-fields.ts';

const JOURNAL_FIELDS = ['work_notes', 'comments'];
const WORK_NOTE_MAX_CHARACTERS = 4000;
const FIELDS_READ_MAX = 50;

const SysId = z.string().regex(/^[0-9a-f]{32}$/, 'a ServiceNow sys_id is 32 hexadecimal digits');
const FieldName = z.string().regex(/^[a-z0-9_]+$/, 'a column of the incident table');
const SettableField = FieldName.refine(
  (name) => !JOURNAL_FIELDS.includes(name),
  'work notes and comments append, they are not set: use servicenow.incident.add_work_note',
);

/** ServiceNow gives every value as text; references come as objects with a value. */
const Value = z.union([z.string(), z.object({ value: z.string() }).transform(({ value }) => value)]);
const RecordAnswer = z.object({ result: z.record(z.string(), Value) });

/** Only these fields are answered: of the rest of a record nothing need be known. */
const incidentPath = (sysId: string, fields: string[]) => `incident/${sysId}?sysparm_fields=${fields.join(',')}`;
const targetOf = (sysId: string, instance: string) => `servicenow:${instance}:incident:${sysId}`;

const GetInput = z.strictObject({ sysId: SysId, fields: z.array(FieldName).min(1).max(FIELDS_READ_MAX) });

export const getIncident = operation({
  tool: 'servicenow.incident.get',
  effect: 'read',
  risk: 'low',
  reversible: false,
  connection: 'servicenow',
  input: GetInput,
  propose: ({ sysId, fields }, instance) => ({
    target: targetOf(sysId, instance),
    // What is read of it: policy may permit some fields and not others.
    fields: { fields: [...fields] },
    key: writeKey(['sn', 'incident', 'get', instance, sysId], [...fields].sort()),
  }),
  async perform({ sysId, fields }, { access }) {
    const { status, values } = await readFields(access, sysId, fields);
    const reversal = { irreversible: 'nothing was changed' };
    return { output: { sysId, fields: values }, reversal, response: { status } };
  },
});

/** Columns of an incident that send somebody to work, or tell somebody of it. */
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
  effect: 'natural',
  risk: 'medium',
  reversible: true,
  connection: 'servicenow',
  input: UpdateInput,
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
  async perform({ sysId, fields }, performance) {
    const path = incidentPath(sysId, ['number', 'sys_mod_count', ...Object.keys(fields)]);
    const call = { method: 'PATCH', path, body: fields, answer: RecordAnswer } as const;
    const { status, answer } = await servicenow(performance.access, call);
    const now: Shown = answer.result;
    const before = stateBefore(performance, now);
    const { stored, incomplete, reversal } = storedBy(sysId, asText(fields), before, now);
    return {
      output: { sysId, number: now.number ?? '', modCount: now.sys_mod_count ?? '', fields: handedOn(stored) },
      ...(before && { before }),
      ...(incomplete && { incomplete }),
      reversal,
      response: { status },
    };
  },
});

/** Later steps go by groups, states and names; texts would make the output too large to keep. */
const HANDED_ON_MAX_CHARACTERS = 255;

const handedOn = (stored: Record<string, string>) =>
  Object.fromEntries(Object.entries(stored).filter(([, value]) => value.length <= HANDED_ON_MAX_CHARACTERS));

const WorkNoteInput = z
  .strictObject({ sysId: SysId, note: z.string().min(1).max(WORK_NOTE_MAX_CHARACTERS), markdown: Markdown })
  .refine((input) => written(input).length <= WORK_NOTE_MAX_CHARACTERS, {
    path: ['note'],
    message: `is longer than ${WORK_NOTE_MAX_CHARACTERS} characters once its markup is escaped; shorten it`,
  });

/** What a journal takes for markup: `[code]` begins HTML, `@[` mentions a user. A space makes text of both. */
const MARKUP = /\[(?=\/?code\])|(?<=@)\[/gi;

const written = ({ note, markdown }: { note: string; markdown?: boolean }) =>
  markdown ? note : note.replace(MARKUP, (bracket) => `${bracket} `);

export const addWorkNote = operation({
  tool: 'servicenow.incident.add_work_note',
  effect: 'probe',
  risk: 'low',
  reversible: false,
  connection: 'servicenow',
  input: WorkNoteInput,
  content: ['note'],
  answersWithIds: true,
  markdownField: 'note',
  propose: (input, instance) => ({
    target: targetOf(input.sysId, instance),
    fields: { note: written(input) },
    key: writeKey(['sn', 'incident', 'work_note', instance, input.sysId], { note: written(input) }),
  }),
  // People edit the text as it would be written: to escape it once more would change what they approve.
  edited: (input, fields) => ({ ...input, ...fields, markdown: true }),
  async perform(input, { access, mark }) {
    const { sysId } = input;
    const { status } = await servicenow(access, {
      method: 'PATCH',
      path: incidentPath(sysId, ['sys_id']),
      body: { work_notes: `${written(input)}\n${markLine(mark)}` },
      answer: RecordAnswer,
    });
    // The answer is the same whether an ACL has dropped the note or not.
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
  'ServiceNow answered, but has not added the note: check that the credential may write work_notes (ACLs, data policies)';

const entryOf = ({ journalEntry }: { journalEntry?: string }): Record<string, string> =>
  journalEntry ? { journalEntry } : {};

/** The note is sent: that it cannot be read settles nothing. */
function unreadable(error: unknown): never {
  if (!(error instanceof TargetRefused)) throw error;
  throw new OutcomeUnknown(`the note was sent and could not be read back: ${error.message}`, error);
}

const NOTES_STAY = { irreversible: 'a work note cannot be taken back, only corrected by another' };

/** A field that is not shown has no state: to take it for empty would be to make one up. */
async function readFields(access: Access, sysId: string, names: string[]) {
  const path = incidentPath(sysId, names);
  const { status, answer } = await servicenow(access, { method: 'GET', path, answer: RecordAnswer });
  const hidden = names.filter((name) => !Object.hasOwn(answer.result, name));
  if (hidden.length > 0) {
    const message = `ServiceNow does not show ${hidden.join(', ')}: check the name, and that the credential may read it`;
    throw new TargetRefused(message, { retryable: false });
  }
  return { status, values: Object.fromEntries(names.map((name) => [name, answer.result[name]])) };
}

/** ServiceNow gives back as text whatever was written. */
const asText = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));

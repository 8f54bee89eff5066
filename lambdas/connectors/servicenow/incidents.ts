import * as z from 'zod';
import { Markdown, operation, writeKey } from '../connector.ts';
import { OutcomeUnknown, TargetRefused } from '../target-errors.ts';
import { servicenow } from './client.ts';
import { inspectRecord } from './display-names.ts';
import { encodedQuery, FindFields, FindOutput, findRecords } from './find-records.ts';
import { findNote, markLine, noteNotShown } from './find-work-note.ts';
import { FIELDS_BY_NAME } from './references.ts';
import {
  asText,
  FieldNames,
  listTarget,
  plainJournalText,
  RECIPIENTS,
  RecordResponse,
  readFields,
  recordPath,
  recordTarget,
  SettableFields,
  SysId,
  updateRecord,
} from './table-records.ts';

const WORK_NOTE_MAX_CHARACTERS = 4000;

const INCIDENT = 'incident';
const incident = (sysId: string) => ({ table: INCIDENT, sysId });
const targetOf = (sysId: string, instance: string) => recordTarget(incident(sysId), instance);

const GetInput = z.lazy(() => z.strictObject({ sysId: SysId, fields: FieldNames }));

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
    const { status, values } = await readFields(access, incident(sysId), fields);
    const reversal = { irreversible: 'nothing was changed' };
    return { output: { sysId, fields: values }, reversal, response: { status } };
  },
});

const FindInput = z.lazy(() => z.strictObject(FindFields));

export const findIncidents = operation({
  tool: 'servicenow.incident.find',
  summary: 'Finds incidents.',
  effect: 'read',
  risk: 'low',
  reversible: false,
  connection: 'servicenow',
  input: FindInput,
  output: FindOutput,
  propose: (input, instance) => ({
    target: listTarget(INCIDENT, instance, encodedQuery(input)),
    fields: { ...input },
    key: writeKey(['sn', 'incident', 'find', instance], input),
  }),
  perform: (input, { access }) => findRecords(access, INCIDENT, input),
});

const UpdateInput = z.lazy(() => z.strictObject({ sysId: SysId, fields: SettableFields }));

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
  byName: FIELDS_BY_NAME,
  propose: ({ sysId, fields }, instance) => ({
    target: targetOf(sysId, instance),
    fields,
    after: asText(fields),
    key: writeKey(['sn', 'incident', 'update', instance, sysId], fields),
  }),
  edited: ({ sysId, fields }, changed) => ({ sysId, fields: { ...fields, ...changed } }),
  before: async ({ sysId, fields }, access) => (await readFields(access, incident(sysId), Object.keys(fields))).values,
  inspect: ({ sysId, fields }, access) => inspectRecord(access, incident(sysId), fields),
  async perform({ sysId, fields }, context) {
    const undo = { tool: 'servicenow.incident.update', input: { sysId } };
    const result = await updateRecord(incident(sysId), fields, context, undo);
    return { ...result, output: { sysId, ...result.output } };
  },
});

const WorkNoteInput = z.lazy(() =>
  z
    .strictObject({
      sysId: SysId,
      note: z.string().min(1).max(WORK_NOTE_MAX_CHARACTERS).describe('the text of the work note'),
      markdown: Markdown,
    })
    .refine((input) => written(input).length <= WORK_NOTE_MAX_CHARACTERS, {
      path: ['note'],
      message: `is longer than ${WORK_NOTE_MAX_CHARACTERS} characters once its markup is escaped; shorten it`,
    }),
);

const written = ({ note, markdown }: { note: string; markdown?: boolean }) =>
  markdown ? note : plainJournalText(note);

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
      path: recordPath(incident(sysId), ['sys_id']),
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

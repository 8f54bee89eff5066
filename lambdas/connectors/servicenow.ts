import * as z from 'zod';
import { type Access, operation, writeKey } from './connector.ts';
import { undone } from './http-exchange.ts';
import { servicenow } from './servicenow-api.ts';

const JOURNAL_FIELDS = ['work_notes', 'comments'];
const WORK_NOTE_MAX_CHARACTERS = 4000;
const FIELDS_READ_MAX = 50;

const SysId = z.string().regex(/^[0-9a-f]{32}$/, 'a ServiceNow sys_id is 32 hexadecimal digits');
const FieldName = z.string().regex(/^[a-z0-9_]+$/, 'a column of the incident table');

/** ServiceNow gives every value as text; references may come as objects with a value. */
const RecordAnswer = z.object({
  result: z.record(z.string(), z.union([z.string(), z.object({ value: z.string() })])),
});
const JournalAnswer = z.object({ result: z.array(z.object({ sys_id: z.string() })) });

const incidentPath = (sysId: string) => `incident/${sysId}`;
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
    fields: {},
    key: writeKey(['sn', 'incident', 'get', instance, sysId], [...fields].sort()),
  }),
  async perform({ sysId, fields }, { access }) {
    const { status, values } = await readFields(access, sysId, fields);
    const reversal = { irreversible: 'nothing was changed' };
    return { output: { sysId, fields: values }, reversal, response: { status } };
  },
});

const UpdateInput = z.strictObject({
  sysId: SysId,
  fields: z
    .record(FieldName, z.union([z.string(), z.number(), z.boolean()]))
    .refine((fields) => Object.keys(fields).length > 0, 'name at least one field to set')
    .refine(
      (fields) => !JOURNAL_FIELDS.some((field) => field in fields),
      'work notes and comments append, they are not set: use servicenow.incident.add_work_note',
    ),
});

export const updateIncident = operation({
  tool: 'servicenow.incident.update',
  effect: 'natural',
  risk: 'medium',
  reversible: true,
  connection: 'servicenow',
  input: UpdateInput,
  propose: ({ sysId, fields }, instance) => ({
    target: targetOf(sysId, instance),
    fields,
    after: asText(fields),
    key: writeKey(['sn', 'incident', 'update', instance, sysId], fields),
  }),
  edited: ({ sysId, fields }, changed) => ({ sysId, fields: { ...fields, ...changed } }),
  before: async ({ sysId, fields }, access) => (await readFields(access, sysId, Object.keys(fields))).values,
  async perform({ sysId, fields }, { access, before }) {
    const after = asText(fields);
    const path = incidentPath(sysId);
    const { status, answer } = await servicenow(access, { method: 'PATCH', path, body: fields, answer: RecordAnswer });
    const names = Object.keys(after);
    const dropped = names.filter((name) => textOf(answer.result[name]) !== after[name]);
    if (dropped.length > 0) {
      throw undone(names, dropped, `ServiceNow did not set ${dropped.join(', ')}: check the ACLs and data policies`);
    }
    return {
      output: { sysId, number: textOf(answer.result.number), modCount: textOf(answer.result.sys_mod_count) },
      ...(before && { before }),
      reversal: before
        ? { tool: 'servicenow.incident.update', input: { sysId, fields: before }, expects: after }
        : { irreversible: 'the state before the write could not be read' },
      response: { status },
    };
  },
});

const WorkNoteInput = z.strictObject({ sysId: SysId, note: z.string().min(1).max(WORK_NOTE_MAX_CHARACTERS) });

export const addWorkNote = operation({
  tool: 'servicenow.incident.add_work_note',
  effect: 'probe',
  risk: 'low',
  reversible: false,
  connection: 'servicenow',
  input: WorkNoteInput,
  propose: ({ sysId, note }, instance) => ({
    target: targetOf(sysId, instance),
    fields: { note },
    key: writeKey(['sn', 'incident', 'work_note', instance, sysId], { note }),
  }),
  async perform({ sysId, note }, { access, mark }) {
    const { status } = await servicenow(access, {
      method: 'PATCH',
      path: incidentPath(sysId),
      body: { work_notes: `${note}\n[${mark}]` },
      answer: RecordAnswer,
    });
    return { output: { sysId }, reversal: NOTES_STAY, response: { status } };
  },
  async probe({ sysId }, { access, mark }) {
    const query = encodeURIComponent(`element_id=${sysId}^element=work_notes^valueLIKE${mark}`);
    const path = `sys_journal_field?sysparm_limit=1&sysparm_query=${query}`;
    const { status, answer } = await servicenow(access, { method: 'GET', path, answer: JournalAnswer });
    const [entry] = answer.result;
    if (!entry) return undefined;
    const response = { status, journalEntry: entry.sys_id };
    return { output: { sysId }, reversal: NOTES_STAY, response, recovered: true };
  },
});

const NOTES_STAY = { irreversible: 'a work note cannot be taken back, only corrected by another' };

async function readFields(access: Access, sysId: string, names: string[]) {
  const path = `${incidentPath(sysId)}?sysparm_fields=${names.join(',')}`;
  const { status, answer } = await servicenow(access, { method: 'GET', path, answer: RecordAnswer });
  return { status, values: Object.fromEntries(names.map((name) => [name, textOf(answer.result[name])])) };
}

/** ServiceNow gives back as text whatever was written. */
const asText = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));

function textOf(value: string | { value: string } | undefined): string {
  return typeof value === 'object' ? value.value : (value ?? '');
}

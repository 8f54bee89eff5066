import * as z from 'zod';
import { CountersignError } from '../run/errors.ts';
import { type Access, operation, type Performance, writeKey } from './connector.ts';
import { exchange, TargetRefused } from './http-exchange.ts';

const JOURNAL_FIELDS = ['work_notes', 'comments'];
const WORK_NOTE_MAX_CHARACTERS = 4000;

const SysId = z.string().regex(/^[0-9a-f]{32}$/, 'a ServiceNow sys_id is 32 hexadecimal digits');
const Credential = z.object({ username: z.string(), password: z.string() });

/** ServiceNow gives every value as text; references may come as objects with a value. */
const RecordAnswer = z.object({
  result: z.record(z.string(), z.union([z.string(), z.object({ value: z.string() })])),
});
const JournalAnswer = z.object({ result: z.array(z.object({ sys_id: z.string() })) });

const UpdateInput = z.strictObject({
  sysId: SysId,
  fields: z
    .record(z.string().regex(/^[a-z0-9_]+$/), z.union([z.string(), z.number(), z.boolean()]))
    .refine((fields) => Object.keys(fields).length > 0, 'name at least one field to set')
    .refine(
      (fields) => !JOURNAL_FIELDS.some((field) => field in fields),
      'work notes and comments append, they are not set: use servicenow.incident.add_work_note',
    ),
});

export const updateIncident = operation({
  tool: 'servicenow.incident.update',
  effect: 'natural',
  connection: 'servicenow',
  input: UpdateInput,
  propose: ({ sysId, fields }, instance) => ({
    target: `servicenow:${instance}:incident:${sysId}`,
    fields,
    key: writeKey(['sn', 'incident', 'update', instance, sysId], fields),
  }),
  async perform({ sysId, fields }, { access, firstAttempt }) {
    const names = Object.keys(fields);
    const before = firstAttempt ? await readFields(access, sysId, names) : undefined;
    const { status, answer } = await exchange({
      ...request(access, 'PATCH', incidentPath(sysId)),
      body: fields,
      answer: RecordAnswer,
    });
    const dropped = names.filter((name) => textOf(answer.result[name]) !== String(fields[name]));
    if (dropped.length > 0) {
      throw new TargetRefused(`ServiceNow did not set ${dropped.join(', ')}: check the ACLs and data policies`, {
        retryable: false,
      });
    }
    return {
      output: { sysId, number: textOf(answer.result.number), modCount: textOf(answer.result.sys_mod_count) },
      ...(before && { before }),
      reversal: before
        ? { tool: 'servicenow.incident.update', input: { sysId, fields: before } }
        : { irreversible: 'the state before the write could not be read' },
      response: { status },
    };
  },
});

const WorkNoteInput = z.strictObject({ sysId: SysId, note: z.string().min(1).max(WORK_NOTE_MAX_CHARACTERS) });

export const addWorkNote = operation({
  tool: 'servicenow.incident.add_work_note',
  effect: 'probe',
  connection: 'servicenow',
  input: WorkNoteInput,
  propose: ({ sysId, note }, instance) => ({
    target: `servicenow:${instance}:incident:${sysId}`,
    fields: { work_notes: note },
    key: writeKey(['sn', 'incident', 'work_note', instance, sysId], { note }),
  }),
  async perform({ sysId, note }, { access, mark }) {
    const { status } = await exchange({
      ...request(access, 'PATCH', incidentPath(sysId)),
      body: { work_notes: `${note}\n[${mark}]` },
      answer: RecordAnswer,
    });
    return { output: { sysId }, reversal: NOTES_STAY, response: { status } };
  },
  async probe({ sysId }, { access, mark }: Performance) {
    const query = `element_id=${sysId}^element=work_notes^valueLIKE${mark}`;
    const { status, answer } = await exchange({
      ...request(access, 'GET', `sys_journal_field?sysparm_limit=1&sysparm_query=${encodeURIComponent(query)}`),
      answer: JournalAnswer,
    });
    const [entry] = answer.result;
    if (!entry) return undefined;
    return {
      output: { sysId },
      reversal: NOTES_STAY,
      response: { status, journalEntry: entry.sys_id },
      recovered: true,
    };
  },
});

const NOTES_STAY = { irreversible: 'a work note cannot be taken back, only corrected by another' };

const incidentPath = (sysId: string) => `incident/${sysId}`;

async function readFields(access: Access, sysId: string, names: string[]): Promise<Record<string, string>> {
  const { answer } = await exchange({
    ...request(access, 'GET', `${incidentPath(sysId)}?sysparm_fields=${names.join(',')}`),
    answer: RecordAnswer,
  });
  return Object.fromEntries(names.map((name) => [name, textOf(answer.result[name])]));
}

function request<Method extends 'GET' | 'PATCH'>({ baseUrl, credential }: Access, method: Method, tablePath: string) {
  const parsed = Credential.safeParse(credential);
  if (!parsed.success) {
    throw new CountersignError('CONNECTION_MISSING', 'the servicenow credential needs "username" and "password"');
  }
  const basic = Buffer.from(`${parsed.data.username}:${parsed.data.password}`).toString('base64');
  return {
    system: 'ServiceNow',
    method,
    url: `${baseUrl}/api/now/table/${tablePath}`,
    headers: { authorization: `Basic ${basic}` },
  };
}

function textOf(value: string | { value: string } | undefined): string {
  return typeof value === 'object' ? value.value : (value ?? '');
}

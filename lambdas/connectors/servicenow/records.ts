import * as z from 'zod';
import { operation, type WriteContext, writeKey } from '../connector.ts';
import { OutcomeUnknown } from '../target-errors.ts';
import { servicenow } from './client.ts';
import { inspectNewRecord, inspectRecord } from './display-names.ts';
import { encodedQuery, FindFields, FindOutput, findRecords } from './find-records.ts';
import { FIELDS_BY_NAME } from './references.ts';
import {
  assertAllowed,
  asText,
  FieldName,
  FieldNames,
  listTarget,
  RECIPIENTS,
  RecordResponse,
  readFields,
  recordTarget,
  SettableFields,
  SysId,
  shortValues,
  TableRecord,
  updateRecord,
} from './table-records.ts';

const Table = z.lazy(() =>
  z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,79}$/, 'the name of a table, like problem')
    .describe('the name of the table'),
);
const OF_RECORD = { connection: 'servicenow' } as const;
const Fields = z.lazy(() => z.record(z.string(), z.string()));

const GetInput = z.lazy(() => z.strictObject({ table: Table, sysId: SysId, fields: FieldNames }));

export const getRecord = operation({
  ...OF_RECORD,
  tool: 'servicenow.record.get',
  summary: 'Reads fields of a record of an allowed table.',
  effect: 'read',
  risk: 'low',
  reversible: false,
  input: GetInput,
  output: z.strictObject({ sysId: SysId, fields: Fields }),
  propose: ({ table, sysId, fields }, instance) => ({
    target: recordTarget({ table, sysId }, instance),
    fields: { fields: [...fields] },
    key: writeKey(['sn', 'record', 'get', instance, table, sysId], [...fields].sort()),
  }),
  async perform({ table, sysId, fields }, { access }) {
    assertAllowed(access, table);
    const { status, values } = await readFields(access, { table, sysId }, fields);
    return {
      output: { sysId, fields: values },
      reversal: { irreversible: 'nothing was changed' },
      response: { status },
    };
  },
});

const FindRecordInput = z.lazy(() => z.strictObject({ table: Table, ...FindFields }));

export const findRecord = operation({
  ...OF_RECORD,
  tool: 'servicenow.record.find',
  summary: 'Finds records of an allowed table.',
  effect: 'read',
  risk: 'low',
  reversible: false,
  input: FindRecordInput,
  output: FindOutput,
  propose: ({ table, ...find }, instance) => ({
    target: listTarget(table, instance, encodedQuery(find)),
    fields: { ...find },
    key: writeKey(['sn', 'record', 'find', instance, table], find),
  }),
  perform({ table, ...find }, { access }) {
    assertAllowed(access, table);
    return findRecords(access, table, find);
  },
});

const UpdateInput = z.lazy(() => z.strictObject({ table: Table, sysId: SysId, fields: SettableFields }));

export const updateAnyRecord = operation({
  ...OF_RECORD,
  tool: 'servicenow.record.update',
  summary: 'Sets fields of a record of an allowed table.',
  effect: 'natural',
  risk: 'medium',
  reversible: true,
  input: UpdateInput,
  output: z.strictObject({ sysId: SysId, number: z.string(), modCount: z.string(), fields: Fields }),
  content: ['fields'],
  recipients: RECIPIENTS,
  byName: FIELDS_BY_NAME,
  propose: ({ table, sysId, fields }, instance) => ({
    target: recordTarget({ table, sysId }, instance),
    fields,
    after: asText(fields),
    key: writeKey(['sn', 'record', 'update', instance, table, sysId], fields),
  }),
  edited: (input, changed) => ({ ...input, fields: { ...input.fields, ...changed } }),
  async before({ table, sysId, fields }, access) {
    assertAllowed(access, table);
    return (await readFields(access, { table, sysId }, Object.keys(fields))).values;
  },
  inspect({ table, sysId, fields }, access) {
    assertAllowed(access, table);
    return inspectRecord(access, { table, sysId }, fields);
  },
  async perform({ table, sysId, fields }, context) {
    assertAllowed(context.access, table);
    const undo = { tool: 'servicenow.record.update', input: { table, sysId } };
    const result = await updateRecord({ table, sysId }, fields, context, undo);
    return { ...result, output: { sysId, ...result.output } };
  },
});

const CreateInput = z.lazy(() =>
  z
    .strictObject({
      table: Table,
      fields: SettableFields,
      correlationField: FieldName.default('correlation_id').describe(
        'the text column that takes the mark of the write, by which a record is found whose response was lost',
      ),
    })
    .refine(({ fields, correlationField }) => !Object.hasOwn(fields, correlationField), {
      path: ['correlationField'],
      message: 'is also set in fields; name another text column of the table, which Countersign sets',
    }),
);
type CreateInput = z.infer<typeof CreateInput>;

export const createRecord = operation({
  ...OF_RECORD,
  tool: 'servicenow.record.create',
  summary: 'Creates a record in an allowed table.',
  effect: 'probe',
  risk: 'medium',
  reversible: false,
  input: CreateInput,
  output: z.strictObject({ sysId: SysId, number: z.string(), fields: Fields }),
  content: ['fields'],
  recipients: RECIPIENTS,
  byName: FIELDS_BY_NAME,
  propose: ({ table, fields, correlationField }, instance) => ({
    target: `servicenow:${instance}:${table}:new record by ${correlationField}`,
    fields,
    key: writeKey(['sn', 'record', 'create', instance, table], fields),
  }),
  edited: (input, changed) => ({ ...input, fields: { ...input.fields, ...changed } }),
  inspect({ table, fields }, access) {
    assertAllowed(access, table);
    return inspectNewRecord(access, fields);
  },
  async perform(input, { access, mark }) {
    const { table, fields, correlationField } = input;
    assertAllowed(access, table);
    const { status, body } = await servicenow(access, {
      method: 'POST',
      path: `${table}?sysparm_fields=${shownNames(input).join(',')}`,
      body: { ...fields, [correlationField]: mark },
      responseSchema: RecordResponse,
    });
    return created(input, body.result, mark, { status });
  },
  probe: findCreated,
});

const shownNames = ({ fields, correlationField }: CreateInput) => [
  'sys_id',
  'number',
  correlationField,
  ...Object.keys(fields),
];

const STAYS = { irreversible: 'a created record is not deleted; close it with servicenow.record.update' };

function created(
  { fields, correlationField }: CreateInput,
  row: Record<string, string>,
  mark: string,
  response: Record<string, number | string>,
) {
  const { sys_id: sysId = '', number = '' } = row;
  if (!SysId.safeParse(sysId).success) {
    throw new OutcomeUnknown('ServiceNow does not show the sys_id of the new record: check the table');
  }
  const requested: Record<string, string> = { ...asText(fields), [correlationField]: mark };
  const ignored = Object.keys(requested).filter((name) => requested[name] !== '' && !row[name]);
  const stored = Object.fromEntries(Object.keys(fields).map((name) => [name, row[name] ?? '']));
  return {
    output: { sysId, number, fields: shortValues(stored) },
    ...(ignored.length > 0 && { incomplete: `ServiceNow did not set ${ignored.join(', ')}: ${CHECK_COLUMNS}` }),
    reversal: STAYS,
    response: { ...response, sysId },
  };
}

const CHECK_COLUMNS = 'check the names of the columns, the ACLs and the data policies';
const Records = z.lazy(() => z.object({ result: z.array(TableRecord) }));
/** The query contains the mark, so one record is expected. */
const FOUND_MAX = 10;

/** An empty list proves that there is no such record only if ServiceNow has omitted nothing. */
async function findCreated(input: CreateInput, { access, mark }: Pick<WriteContext, 'access' | 'mark'>) {
  const { table, correlationField } = input;
  assertAllowed(access, table);
  const names = shownNames(input).join(',');
  const query = encodeURIComponent(`${correlationField}=${mark}`);
  const path = `${table}?sysparm_fields=${names}&sysparm_limit=${FOUND_MAX}&sysparm_query=${query}`;
  const { body, header } = await servicenow(access, { method: 'GET', path, responseSchema: Records });
  const found = body.result.find((row) => row[correlationField] === mark);
  if (found) return { ...created(input, found, mark, {}), recovered: true as const };
  if (body.result.length === 0 && header('x-total-count') === '0') return undefined;
  throw new OutcomeUnknown(
    `ServiceNow does not show whether the record exists: check ${table}, and that the credential may read ${correlationField}`,
  );
}

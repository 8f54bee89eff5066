import * as z from 'zod';
import type { Access, Inspected, Names } from '../connector.ts';
import { servicenow } from './client.ts';
import { REFERENCES } from './references.ts';
import { type RecordRef, recordPath, shownFields, TableRecord } from './table-records.ts';

/** Shown on cards, so bounded. */
const NAME_MAX_CHARACTERS = 100;
const LOOKED_UP_MAX = 50;
const SYS_ID = /^[0-9a-f]{32}$/;

const Shown = z.lazy(() =>
  z.union([
    z.string().transform((value) => ({ value, display_value: value, link: undefined })),
    z.object({ value: z.string(), display_value: z.string().nullish(), link: z.string().optional() }),
  ]),
);
const Response = z.lazy(() => z.object({ result: z.record(z.string(), Shown) }));
const Rows = z.lazy(() => z.object({ result: z.array(TableRecord) }));

/** The current values of these fields, and the names behind the current and the new values. */
export async function inspectRecord(
  access: Access,
  record: RecordRef,
  fields: Record<string, unknown>,
): Promise<Inspected> {
  const path = `${recordPath(record, Object.keys(fields))}&sysparm_display_value=all`;
  const { body } = await servicenow(access, { method: 'GET', path, responseSchema: Response });
  const values = Object.fromEntries(Object.entries(body.result).map(([name, { value }]) => [name, value]));
  const before = shownFields(values, Object.keys(fields));
  const names: Names = {};
  for (const [field, { value, display_value }] of Object.entries(body.result)) add(names, field, value, display_value);
  // A field with a value says its table itself, in its link.
  const linked = (field: string) => /\/table\/([a-z0-9_]+)\/[0-9a-f]{32}$/.exec(body.result[field]?.link ?? '')?.[1];
  await addNewNames(access, names, fields, (field) => linked(field) ?? REFERENCES.get(field));
  return { before, ...(Object.keys(names).length > 0 && { names }) };
}

/** The names behind the values of a record that does not exist yet. */
export async function inspectNewRecord(access: Access, fields: Record<string, unknown>): Promise<Inspected> {
  const names: Names = {};
  await addNewNames(access, names, fields, (field) => REFERENCES.get(field));
  return Object.keys(names).length > 0 ? { names } : {};
}

async function addNewNames(
  access: Access,
  names: Names,
  fields: Record<string, unknown>,
  tableOf: (field: string) => string | undefined,
): Promise<void> {
  const tables = new Map(
    Object.keys(fields).flatMap((field) => {
      const [table, value] = [tableOf(field), String(fields[field])];
      return table !== undefined && SYS_ID.test(value) ? [[field, { table, value }] as const] : [];
    }),
  );
  for (const table of new Set([...tables.values()].map((each) => each.table))) {
    const wanted = [...tables].filter(([, each]) => each.table === table);
    const found = await namesIn(
      access,
      table,
      wanted.map(([, { value }]) => value),
    ).catch(() => new Map<string, string>());
    for (const [field, { value }] of wanted) add(names, field, value, found.get(value));
  }
}

function add(names: Names, field: string, value: string, name: string | null | undefined): void {
  if (!name || name === value || name.length > NAME_MAX_CHARACTERS) return;
  names[field] = { ...names[field], [value]: name };
}

/** The credential may not be allowed to read the table: then the value is shown without a name. */
async function namesIn(access: Access, table: string, sysIds: string[]): Promise<Map<string, string>> {
  const wanted = [...new Set(sysIds)].slice(0, LOOKED_UP_MAX);
  const query = encodeURIComponent(`sys_idIN${wanted.join(',')}`);
  const path = `${table}?sysparm_fields=sys_id,name&sysparm_limit=${LOOKED_UP_MAX}&sysparm_query=${query}`;
  const { body } = await servicenow(access, { method: 'GET', path, responseSchema: Rows });
  const rows = body.result.filter(({ sys_id = '' }) => wanted.includes(sys_id));
  return new Map(rows.map(({ sys_id = '', name = '' }) => [sys_id, name]));
}

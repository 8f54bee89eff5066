import * as z from 'zod';
import type { Access } from '../connector.ts';
import { TargetRefused } from '../target-errors.ts';
import { servicenow } from './client.ts';
import { FieldName, FieldNames, SysId, shownFields, TableRecord } from './table-records.ts';

const CONDITIONS_MAX = 20;
const VALUE_MAX_CHARACTERS = 500;
const LISTED_MAX = 100;
const RECORDS_MAX = 50;
/** A step stores 64 KiB. */
const OUTPUT_MAX_BYTES = 48 * 1024;

/** `^` separates conditions, so a value with it would add conditions. */
export const Text = z
  .string()
  .max(VALUE_MAX_CHARACTERS)
  .regex(/^[^^\r\n]*$/, 'must not contain ^ or line breaks')
  // ServiceNow evaluates such a value as a script.
  .regex(/^(?!\s*javascript:)/i, 'must not begin with javascript:');
const Operand = z.lazy(() => z.union([Text, z.number(), z.boolean()]).transform(String));
const Listed = Text.regex(/^[^,]+$/, 'a value of a list must not be empty or contain a comma');

const field = FieldName.describe('the column that is compared');
const Condition = z.lazy(() =>
  z.union([
    z.strictObject({ field, is: Operand.describe('the column has this value') }),
    z.strictObject({ field, isNot: Operand.describe('the column has another value') }),
    z.strictObject({
      field,
      in: z.array(Listed).min(1).max(LISTED_MAX).describe('the column has one of these values'),
    }),
    z.strictObject({ field, contains: Text.min(1).describe('the column contains this text') }),
    z.strictObject({ field, startsWith: Text.min(1).describe('the column starts with this text') }),
    z.strictObject({ field, atLeast: Operand.describe('the column has this value or a higher one') }),
    z.strictObject({ field, atMost: Operand.describe('the column has this value or a lower one') }),
    z.strictObject({ field, empty: z.boolean().describe('`true`: the column is empty; `false`: it is not') }),
  ]),
);
type Condition = z.infer<typeof Condition>;

export const FindFields = {
  where: z.array(Condition).min(1).max(CONDITIONS_MAX).describe('conditions; all of them must be true'),
  fields: FieldNames,
  limit: z.int().min(1).max(RECORDS_MAX).default(10).describe('how many records are returned at most'),
  orderBy: FieldName.optional().describe('the column that orders the records'),
  descending: z.boolean().default(false).describe('`true`: the highest value first'),
};
const FindInput = z.lazy(() => z.strictObject(FindFields));
export type FindInput = z.infer<typeof FindInput>;

export const FindOutput = z.lazy(() =>
  z.strictObject({
    records: z.array(z.strictObject({ sysId: SysId, fields: z.record(z.string(), z.string()) })),
    total: z.int().describe('how many records match'),
    truncated: z.boolean().describe('records were left out because the output would be too large'),
  }),
);

const Records = z.lazy(() => z.object({ result: z.array(TableRecord) }));

export function encodedQuery({ where, orderBy, descending }: FindInput): string {
  const order = orderBy === undefined ? [] : [`ORDERBY${descending ? 'DESC' : ''}${orderBy}`];
  return [...where.map(clauseOf), ...order].join('^');
}

function clauseOf(condition: Condition): string {
  const { field } = condition;
  if ('is' in condition) return `${field}=${condition.is}`;
  if ('isNot' in condition) return `${field}!=${condition.isNot}`;
  if ('in' in condition) return `${field}IN${condition.in.join(',')}`;
  if ('contains' in condition) return `${field}LIKE${condition.contains}`;
  if ('startsWith' in condition) return `${field}STARTSWITH${condition.startsWith}`;
  if ('atLeast' in condition) return `${field}>=${condition.atLeast}`;
  if ('atMost' in condition) return `${field}<=${condition.atMost}`;
  return `${field}${condition.empty ? 'ISEMPTY' : 'ISNOTEMPTY'}`;
}

/** Whether a returned value meets the condition; undefined if only ServiceNow can compare (numbers, dates). */
function isMet(condition: Condition, value: string): boolean | undefined {
  const lower = value.toLowerCase();
  if ('is' in condition) return lower === condition.is.toLowerCase();
  if ('isNot' in condition) return lower !== condition.isNot.toLowerCase();
  if ('in' in condition) return condition.in.some((each) => each.toLowerCase() === lower);
  if ('contains' in condition) return lower.includes(condition.contains.toLowerCase());
  if ('startsWith' in condition) return lower.startsWith(condition.startsWith.toLowerCase());
  if ('empty' in condition) return (value === '') === condition.empty;
  return undefined;
}

/** Finds records of a table. */
export async function findRecords(access: Access, table: string, input: FindInput) {
  const { where, fields, limit } = input;
  const names = [...new Set(['sys_id', ...fields, ...where.map(({ field }) => field)])];
  const query = encodeURIComponent(encodedQuery(input));
  const path = `${table}?sysparm_fields=${names.join(',')}&sysparm_limit=${limit}&sysparm_query=${query}`;
  const { status, body, header } = await servicenow(access, { method: 'GET', path, responseSchema: Records });
  const rows = body.result.map((row) => shownFields(row, names));
  for (const condition of where) assertApplied(condition, rows);
  const records = rows.map((row) => ({ sysId: row.sys_id ?? '', fields: shownFields(row, fields) }));
  const fitting = upTo(records);
  return {
    output: {
      records: fitting,
      total: Number(header('x-total-count') ?? records.length),
      truncated: fitting.length < records.length,
    },
    reversal: { irreversible: 'nothing was changed' },
    response: { status },
  };
}

/** ServiceNow ignores a condition on a column that does not exist, and then returns records that nobody asked for. */
function assertApplied(condition: Condition, rows: readonly Record<string, string>[]): void {
  if (rows.every((row) => isMet(condition, row[condition.field] ?? '') !== false)) return;
  const message = `ServiceNow ignored the condition on ${condition.field}: check the name of the column`;
  throw new TargetRefused(message, { retryable: false });
}

function upTo<Found>(records: Found[]): Found[] {
  let bytes = 0;
  const end = records.findIndex((record) => {
    bytes += Buffer.byteLength(JSON.stringify(record));
    return bytes > OUTPUT_MAX_BYTES;
  });
  return end < 0 ? records : records.slice(0, end);
}

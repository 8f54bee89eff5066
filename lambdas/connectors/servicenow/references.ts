import { closestNames } from '../../entry/did-you-mean.ts';
import { CountersignError } from '../../run/errors.ts';
import type { Access, ReferencesByName } from '../connector.ts';
import { findRecords, Text } from './find-records.ts';

/** Columns of a task that refer to a record, with its table. All these tables have a column `name`. */
export const REFERENCES: ReadonlyMap<string, string> = new Map([
  ['assignment_group', 'sys_user_group'],
  ['assigned_to', 'sys_user'],
  ['caller_id', 'sys_user'],
  ['opened_by', 'sys_user'],
  ['resolved_by', 'sys_user'],
  ['closed_by', 'sys_user'],
  ['cmdb_ci', 'cmdb_ci'],
  ['business_service', 'cmdb_ci_service'],
  ['location', 'cmn_location'],
]);

const SYS_ID = /^[0-9a-f]{32}$/i;
const NAME_MAX_CHARACTERS = 100;
/** A name is a value of a query, so it must not add conditions or be run as a script. */
const isSearchable = (name: string) => name.length <= NAME_MAX_CHARACTERS && Text.min(1).safeParse(name).success;
const HOMONYMS_SHOWN_MAX = 5;
const CANDIDATES_READ_MAX = 50;
const CANDIDATES_SHOWN_MAX = 5;
/** The first characters of a word are rarely the mistyped ones. */
const START_CHARACTERS = 3;

/** `assignment_group: Database` in `fields` of a write. */
export const FIELDS_BY_NAME: ReferencesByName = {
  named: (input) => namedFields(fieldsOf(input)),
  async resolve(input, access) {
    const fields = { ...fieldsOf(input) };
    for (const field of namedFields(fields)) fields[field] = await sysIdOf(access, field, String(fields[field]));
    return { ...(input as object), fields };
  },
};

function fieldsOf(input: unknown): Record<string, unknown> {
  const { fields } = (input ?? {}) as { fields?: unknown };
  return typeof fields === 'object' && fields !== null ? (fields as Record<string, unknown>) : {};
}

const namedFields = (fields: Record<string, unknown>): string[] =>
  Object.keys(fields).filter((field) => isName(field, fields[field]));

/** An empty value clears the field. */
function isName(field: string, value: unknown): boolean {
  if (!REFERENCES.has(field)) return false;
  return ['string', 'number', 'boolean'].includes(typeof value) && value !== '' && !SYS_ID.test(String(value));
}

const invalid = (message: string) => new CountersignError('INPUT_INVALID', message);

/** The record with this name, if there is exactly one. ServiceNow counts also those that the credential may not read. */
async function sysIdOf(access: Access, field: string, name: string): Promise<string> {
  const table = REFERENCES.get(field) ?? '';
  if (!isSearchable(name)) {
    const rules = 'without ^ and line breaks, and does not start with javascript:';
    throw invalid(`${field}: a name has 1 to ${NAME_MAX_CHARACTERS} characters, ${rules}; give the sys_id instead`);
  }
  const where = [{ field: 'name', is: name }];
  const { records, total } = await read(access, table, where, HOMONYMS_SHOWN_MAX);
  const [first] = records;
  if (first && total === 1) return first.sysId;
  if (total > 0) throw invalid(`${field}: ${ambiguous(table, name, total, records)}`);
  // The search for similar names only helps to correct the name.
  const candidates = await similarNames(access, table, name).catch(() => []);
  const hint = candidates.length > 0 ? `; similar names: ${candidates.map(quoted).join(', ')}` : '';
  throw invalid(
    `${field}: no record of ${table} is named ${quoted(name)}${hint}. Correct the name, or give the sys_id`,
  );
}

function ambiguous(table: string, name: string, total: number, records: readonly { sysId: string }[]): string {
  if (records.length === 0) return `the credential may not read ${quoted(name)} in ${table}; give the sys_id`;
  const ids = records.map(({ sysId }) => sysId).join(', ');
  return `${total} records of ${table} are named ${quoted(name)} (${ids}); give the sys_id of one`;
}

async function similarNames(access: Access, table: string, name: string): Promise<string[]> {
  const [word = '', ...others] = name.trim().split(/\s+/);
  const startsWith = others.length > 0 ? word : word.slice(0, START_CHARACTERS);
  if (startsWith === '') return [];
  const { records } = await read(access, table, [{ field: 'name', startsWith }], CANDIDATES_READ_MAX);
  const names = records.flatMap(({ fields }) => (isSearchable(fields.name ?? '') ? [fields.name ?? ''] : []));
  return closestNames(name, [...new Set(names)]).slice(0, CANDIDATES_SHOWN_MAX);
}

async function read(access: Access, table: string, where: Parameters<typeof findRecords>[2]['where'], limit: number) {
  return (await findRecords(access, table, { where, fields: ['name'], limit, descending: false })).output;
}

const quoted = (name: string): string => JSON.stringify(name);

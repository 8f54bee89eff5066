import type { Collection } from '../store.ts';
import type { SystemContext } from '../system.ts';
import { INCIDENT_DEFAULTS, PROBLEM_DEFAULTS, type Row, seededSysId } from './seed.ts';

/** The user of a call and its `sysparm_` parameters. */
export interface Reader {
  user: string;
  display: 'true' | 'false' | 'all';
  /** Empty for all fields. */
  fields: readonly string[];
  plainReferences: boolean;
  inputIsDisplay: boolean;
}

const TABLES = ['incident', 'problem', 'sys_journal_field', 'sys_user_group', 'sys_user'] as const;

/** Journal fields. Their values are appended to `sys_journal_field`, not stored in the record. */
export const JOURNALS: Readonly<Record<string, string>> = { work_notes: 'Work notes', comments: 'Additional comments' };

const REFERENCES: Readonly<Record<string, string>> = {
  assignment_group: 'sys_user_group',
  assigned_to: 'sys_user',
  caller_id: 'sys_user',
  opened_by: 'sys_user',
};

const STATES: Row = { 1: 'New', 2: 'In Progress', 3: 'On Hold', 6: 'Resolved', 7: 'Closed', 8: 'Canceled' };
const PRIORITIES: Row = { 1: '1 - Critical', 2: '2 - High', 3: '3 - Moderate', 4: '4 - Low', 5: '5 - Planning' };
/** A date in one of these fields is stored with a time. */
const TIMES = ['due_date'];
const DATE = /^\d{4}-\d{2}-\d{2}$/;
/** Incidents in these states are no longer active. */
const ENDED_STATES = ['7', '8'];

/** The tables in which records can be written, with their columns and the start of their numbers. */
const WRITABLE: Readonly<Record<string, { defaults: Row; prefix: string }>> = {
  incident: { defaults: INCIDENT_DEFAULTS, prefix: 'INC00' },
  problem: { defaults: PROBLEM_DEFAULTS, prefix: 'PRB00' },
};

/** The tables of the instance: journals are appended, and changes are counted. */
export class ServiceNowTables {
  readonly #context: SystemContext;
  readonly #tables: Map<string, Collection<Row>>;
  /** The numbers in use, so that finding a free one needs no scan of all incidents. */
  readonly #incidentNumbers: Collection<{ sys_id: string }>;

  constructor(context: SystemContext) {
    this.#context = context;
    this.#tables = new Map(TABLES.map((name) => [name, context.store.collection<Row>(`servicenow.${name}`)]));
    this.#incidentNumbers = context.store.collection('servicenow.number');
  }

  has(table: string): boolean {
    return this.#tables.has(table);
  }

  get(table: string, sysId: string): Row | undefined {
    return this.#of(table).get(sysId);
  }

  rows(table: string, parent?: string): Row[] {
    return this.#of(table).list(table === 'sys_journal_field' ? parent : undefined);
  }

  latestIncidents(limit: number): Row[] {
    return this.#of('incident').latest(limit);
  }

  journalOf(sysId: string): Row[] {
    return this.#of('sys_journal_field').list(sysId);
  }

  seed(table: string, row: Row): void {
    this.#of(table).put(row.sys_id ?? '', row);
  }

  /** Undefined if the given sys_id or number exists. Webhook samples have their own, so that both sides agree. */
  create(table: string, input: Record<string, unknown>, writer: Reader): Row | undefined {
    const fields = this.#writable(table, input, writer);
    if (this.get(table, text(input.sys_id)) || this.#incidentNumbers.get(text(input.number))) return undefined;
    const sys_id = text(input.sys_id) || this.#context.store.nextId('servicenow.sys_id', 32);
    const number = text(input.number) || this.#freeNumber(WRITABLE[table]?.prefix ?? '');
    const at = this.#timestamp();
    const row: Row = {
      ...WRITABLE[table]?.defaults,
      ...fields,
      number,
      sys_id,
      sys_class_name: table,
      opened_at: at,
      opened_by: seededSysId('admin'),
      sys_created_on: at,
      sys_created_by: writer.user,
      sys_updated_on: at,
      sys_updated_by: writer.user,
      sys_mod_count: '0',
    };
    this.#of(table).put(sys_id, row);
    this.#incidentNumbers.put(number, { sys_id });
    this.#appendJournals(sys_id, input, writer.user);
    return row;
  }

  /** Whether records of the table can be written. */
  isWritable(table: string): boolean {
    return Object.hasOwn(WRITABLE, table);
  }

  /** Undefined if the record does not exist. A change to the same values is not counted. */
  change(table: string, sysId: string, input: Record<string, unknown>, writer: Reader): Row | undefined {
    const row = this.get(table, sysId);
    if (!row) return undefined;
    const changed = { ...row, ...this.#writable(table, input, writer) };
    if (changed.state !== row.state) changed.active = String(!ENDED_STATES.includes(changed.state ?? ''));
    const notes = this.#appendJournals(sysId, input, writer.user);
    const same = Object.keys(changed).every((field) => changed[field] === row[field]);
    if (same && notes === 0) return row;
    changed.sys_mod_count = String(Number(row.sys_mod_count) + 1);
    changed.sys_updated_on = this.#timestamp();
    changed.sys_updated_by = writer.user;
    this.#of(table).put(sysId, changed);
    return changed;
  }

  /** The row as the Table API returns it. */
  show(table: string, row: Row, reader: Reader): Record<string, unknown> {
    const journals = table === 'incident' ? Object.keys(JOURNALS) : [];
    const fields = reader.fields.length > 0 ? reader.fields : [...Object.keys(row), ...journals];
    const known = fields.filter((field) => field in row || journals.includes(field) || isCustom(field));
    return Object.fromEntries(known.map((field) => [field, this.#showField(table, row, field, reader)]));
  }

  /** The display value: for example the name of a group instead of its sys_id. */
  displayOf(field: string, value: string): string {
    if (value === '') return '';
    if (field in REFERENCES) return this.get(REFERENCES[field] ?? '', value)?.name ?? value;
    if (field === 'state') return STATES[value] ?? value;
    if (field === 'priority') return PRIORITIES[value] ?? value;
    return value;
  }

  #showField(table: string, row: Row, field: string, reader: Reader): unknown {
    if (table === 'incident' && field in JOURNALS) {
      const display_value = reader.display === 'false' ? '' : this.#journalText(row.sys_id ?? '', field);
      return reader.display === 'all' ? { display_value, value: '' } : display_value;
    }
    const value = row[field] ?? '';
    const display_value = this.displayOf(field, value);
    if (field in REFERENCES && value !== '') {
      const link = `${this.#context.baseUrl()}/api/now/table/${REFERENCES[field]}/${value}`;
      if (reader.display === 'all') return { display_value, link, value };
      if (reader.plainReferences) return reader.display === 'true' ? display_value : value;
      return reader.display === 'true' ? { display_value, link } : { link, value };
    }
    if (reader.display === 'all') return { display_value, value };
    return reader.display === 'true' ? display_value : value;
  }

  /** Newest entry first, as in the activity stream. */
  #journalText(sysId: string, field: string): string {
    const entries = this.journalOf(sysId).filter((row) => row.element === field);
    return entries
      .reverse()
      .map((row) => `${row.sys_created_on} - ${row.sys_created_by} (${JOURNALS[field]})\n${row.value}\n\n`)
      .join('');
  }

  #appendJournals(sysId: string, input: Record<string, unknown>, user: string): number {
    const notes = Object.keys(JOURNALS).filter((field) => text(input[field]) !== '');
    for (const field of notes) {
      const sys_id = this.#context.store.nextId('servicenow.journal', 32);
      const row: Row = {
        sys_id,
        name: 'incident',
        element: field,
        element_id: sysId,
        value: text(input[field]),
        sys_created_on: this.#timestamp(),
        sys_created_by: user,
      };
      this.#of('sys_journal_field').put(sys_id, row, sysId);
    }
    return notes.length;
  }

  /** Drops fields that cannot be written (system fields, the number, unknown columns) without an error, as ServiceNow does. */
  #writable(table: string, input: Record<string, unknown>, writer: Reader): Row {
    const columns = WRITABLE[table]?.defaults ?? {};
    const entries = Object.entries(input).filter(
      ([field]) => field !== 'number' && (field in columns || isCustom(field)),
    );
    return Object.fromEntries(entries.map(([field, value]) => [field, this.#stored(field, text(value), writer)]));
  }

  #stored(field: string, value: string, writer: Reader): string {
    if (TIMES.includes(field) && DATE.test(value)) return `${value} 00:00:00`;
    const table = REFERENCES[field];
    if (!writer.inputIsDisplay || table === undefined) return value;
    return this.rows(table).find((row) => row.name === value)?.sys_id ?? value;
  }

  #freeNumber(prefix: string): string {
    for (;;) {
      const number = `${prefix}${10_006 + this.#context.store.next('servicenow.number')}`;
      if (!this.#incidentNumbers.get(number)) return number;
    }
  }

  #of(table: string): Collection<Row> {
    const rows = this.#tables.get(table);
    if (!rows) throw new Error(`no table ${table}`);
    return rows;
  }

  /** In the format of ServiceNow: UTC, whole seconds. */
  #timestamp(): string {
    return new Date(this.#context.now()).toISOString().slice(0, 19).replace('T', ' ');
  }
}

/** Columns that a customer has added. This instance has all of them. */
const isCustom = (field: string): boolean => field.startsWith('u_');

/** A column contains text, for every JSON type. */
function text(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

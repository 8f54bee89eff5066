import type { FakeAnswer, FakeRequest } from './fake-targets.ts';

export interface Incident {
  fields: Record<string, string>;
  workNotes: string[];
  /** An ACL forbids to write notes: they are dropped without an error. */
  dropsNotes?: true;
  /** An ACL forbids to read them: the journal counts them, and lists none. */
  hidesNotes?: true;
}

/** The parts of ServiceNow that the connector uses: incidents, and the journal of their work notes. */
export class FakeServiceNow {
  readonly incidents = new Map<string, Incident>();
  /** Of other tables, by table and sys_id. */
  readonly records = new Map<string, Map<string, Record<string, string>>>();

  answer({ method, url, parts: [, , , table = '', sysId = ''], body }: FakeRequest): FakeAnswer {
    if (table !== 'incident' && table !== 'sys_journal_field') return this.#record(method, table, sysId, url, body);
    if (table === 'incident' && sysId === '') return this.#list(this.#incidentRows(), url);
    if (table === 'sys_journal_field') return this.#journal(url.searchParams.get('sysparm_query') ?? '');
    const incident = this.incidents.get(sysId);
    if (incident && url.searchParams.get('sysparm_display_value') === 'true') {
      const shown = incident.hidesNotes ? {} : { work_notes: incident.workNotes.join('\n\n') };
      return { status: 200, body: { result: shown } };
    }
    if (!incident) return { status: 404, body: { error: { message: 'No Record found' } } };
    for (const [field, value] of Object.entries(body ?? {})) {
      if (field === 'work_notes') {
        if (!incident.dropsNotes) incident.workNotes.push(String(value));
      } else if (field in incident.fields && field !== 'number') incident.fields[field] = asStored(String(value));
    }
    const shown =
      url.searchParams.get('sysparm_display_value') === 'all' ? this.#named(incident.fields) : incident.fields;
    return { status: 200, body: { result: shown } };
  }

  /** Each value with its display value: the name of the record that it refers to, or the value itself. */
  #named(fields: Record<string, string>) {
    const nameOf = (value: string) => [...this.records.values()].find((rows) => rows.has(value))?.get(value)?.name;
    return Object.fromEntries(
      Object.entries(fields).map(([field, value]) => [field, { value, display_value: nameOf(value) ?? value }]),
    );
  }

  #incidentRows(): Record<string, string>[] {
    return [...this.incidents].map(([sys_id, { fields }]) => ({ sys_id, ...fields }));
  }

  #list(rows: readonly Record<string, string>[], url: URL): FakeAnswer {
    const clauses = (url.searchParams.get('sysparm_query') ?? '')
      .split('^')
      .map((each) => /^([a-z_]+)(=|STARTSWITH)(.*)$/.exec(each) ?? []);
    const found = rows.filter((row) =>
      clauses.every(([clause, field = '', operator, operand = '']) => {
        const value = row[field] ?? '';
        return clause === undefined || (operator === '=' ? value === operand : value.startsWith(operand));
      }),
    );
    const limit = Number(url.searchParams.get('sysparm_limit') ?? rows.length);
    const headers = { 'x-total-count': String(found.length) };
    return { status: 200, body: { result: found.slice(0, limit) }, headers };
  }

  #record(method: string, table: string, sysId: string, url: URL, body: FakeRequest['body']): FakeAnswer {
    const rows = this.records.get(table) ?? new Map<string, Record<string, string>>();
    this.records.set(table, rows);
    if (method === 'GET' && sysId === '') return this.#list([...rows.values()], url);
    const id = sysId || `${rows.size}`.padStart(32, 'c');
    const known = method === 'POST' ? { sys_id: id, number: `PRB${rows.size}`, sys_mod_count: '0' } : rows.get(id);
    if (!known) return { status: 404, body: { error: { message: 'No Record found' } } };
    const written = Object.entries(body ?? {}).map(([name, value]) => [name, String(value)]);
    const row = { ...known, ...Object.fromEntries(written) };
    rows.set(id, row);
    return { status: method === 'POST' ? 201 : 200, body: { result: row } };
  }

  #journal(query: string): FakeAnswer {
    const [, id = '', mark = ''] = /^element_id=(.*)\^element=work_notes(?:\^valueLIKE(.*))?$/.exec(query) ?? [];
    const { workNotes: notes = [], hidesNotes } = this.incidents.get(id) ?? {};
    const about = { element_id: id, element: 'work_notes' };
    const entries = notes.map((value, index) => ({ sys_id: `journal-${index}`, ...about, value }));
    const result = entries.filter(({ value }) => value.includes(mark));
    const headers = { 'x-total-count': String(result.length) };
    return { status: 200, body: { result: hidesNotes ? [] : result }, headers };
  }
}

/** A date is stored with a time. */
const asStored = (value: string) => (/^\d{4}-\d\d-\d\d$/.test(value) ? `${value} 00:00:00` : value);

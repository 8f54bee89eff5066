import type { FakeAnswer, FakeRequest } from './fake-outside.ts';

export interface Incident {
  fields: Record<string, string>;
  workNotes: string[];
  /** An ACL forbids to write notes: they are dropped without a word. */
  dropsNotes?: true;
  /** An ACL forbids to read them: the journal counts them, and lists none. */
  hidesNotes?: true;
}

/** ServiceNow as far as the connector speaks to it: incidents, and the journal of their work notes. */
export class FakeServiceNow {
  readonly incidents = new Map<string, Incident>();

  answer({ url, parts: [, , , table, sysId = ''], body }: FakeRequest): FakeAnswer {
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
    return { status: 200, body: { result: incident.fields } };
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

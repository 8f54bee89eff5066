import type { FakeAnswer, FakeRequest } from './fake-outside.ts';

export interface Incident {
  fields: Record<string, string>;
  workNotes: string[];
}

/** ServiceNow as far as the connector speaks to it: incidents, and the journal of their work notes. */
export class FakeServiceNow {
  readonly incidents = new Map<string, Incident>();

  answer({ url, parts: [, , , table, sysId = ''], body }: FakeRequest): FakeAnswer {
    if (table === 'sys_journal_field') return this.#journal(url.searchParams.get('sysparm_query') ?? '');
    const incident = this.incidents.get(sysId);
    if (incident && url.searchParams.get('sysparm_display_value') === 'true') {
      return { status: 200, body: { result: { work_notes: incident.workNotes.join('\n\n') } } };
    }
    if (!incident) return { status: 404, body: { error: { message: 'No Record found' } } };
    for (const [field, value] of Object.entries(body ?? {})) {
      if (field === 'work_notes') incident.workNotes.push(String(value));
      else if (field in incident.fields && field !== 'number') incident.fields[field] = asStored(String(value));
    }
    return { status: 200, body: { result: incident.fields } };
  }

  #journal(query: string): FakeAnswer {
    const [, id = '', mark = ''] = /^element_id=(.*)\^element=work_notes(?:\^valueLIKE(.*))?$/.exec(query) ?? [];
    const notes = this.incidents.get(id)?.workNotes ?? [];
    const about = { element_id: id, element: 'work_notes' };
    const entries = notes.map((value, index) => ({ sys_id: `journal-${index}`, ...about, value }));
    const result = entries.filter(({ value }) => value.includes(mark));
    return { status: 200, body: { result }, headers: { 'x-total-count': String(result.length) } };
  }
}

/** A date is kept with its time. */
const asStored = (value: string) => (/^\d{4}-\d\d-\d\d$/.test(value) ? `${value} 00:00:00` : value);

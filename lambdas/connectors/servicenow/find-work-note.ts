import * as z from 'zod';
import type { Access } from '../connector.ts';
import { EXCHANGE_TIMEOUT_MS, FORBIDDEN, OutcomeUnknown, TargetRefused } from '../exchange.ts';
import { servicenow } from './client.ts';

/** A note is written and then read, perhaps in two places, all within the time of one step. */
const READ_TIMEOUT_MS = EXCHANGE_TIMEOUT_MS / 2;
/** With its mark in the query there is one, or none. */
const ENTRIES_MAX = 10;

const Entry = z.object({ sys_id: z.string(), element_id: z.string(), element: z.string(), value: z.string() });
const Entries = z.object({ result: z.array(Entry) });
const Activity = z.object({ result: z.object({ work_notes: z.string().optional() }) });

/** The note that carries a mark. `absent` is only said where ServiceNow would have shown it. */
export type FoundNote = { kind: 'found'; journalEntry?: string } | { kind: 'absent' } | { kind: 'undecided' };

/**
 * Looks for a note by its mark. ServiceNow leaves out of a list what an ACL forbids to read, and says nothing but the
 * number of all; it ignores a clause of a query that it does not understand, and lists notes of others. So an entry is
 * compared with the mark, and that none is listed counts only if none was left out. A query rule may hide even the
 * number: the incident's own field must show its notes, too.
 */
export async function findNote(access: Access, sysId: string, mark: string): Promise<FoundNote> {
  const journal = await findEntry(access, sysId, mark);
  if (journal.kind === 'found') return journal;
  const activity = await findInActivity(access, sysId, mark);
  if (activity.kind === 'found') return activity;
  return journal.kind === 'absent' && activity.kind === 'absent' ? journal : { kind: 'undecided' };
}

/** What to do when nobody can tell. */
export const noteNotShown = () =>
  new OutcomeUnknown(
    'ServiceNow does not show whether it has the note: look at the incident, and let the credential read work_notes and sys_journal_field',
  );

async function findEntry(access: Access, sysId: string, mark: string): Promise<FoundNote> {
  const query = encodeURIComponent(`element_id=${sysId}^element=work_notes^valueLIKE${mark}`);
  const fields = Object.keys(Entry.shape).join(',');
  const path = `sys_journal_field?sysparm_fields=${fields}&sysparm_limit=${ENTRIES_MAX}&sysparm_query=${query}`;
  const reading = servicenow(access, { method: 'GET', path, answer: Entries, timeoutMs: READ_TIMEOUT_MS });
  const read = await reading.catch(unlessForbidden);
  if (!read) return { kind: 'undecided' };
  const { result } = read.answer;
  const ours = result.find((entry) => entry.element_id === sysId && isMarked(entry.value, mark));
  if (ours) return { kind: 'found', journalEntry: ours.sys_id };
  return read.header('x-total-count') === String(result.length) ? { kind: 'absent' } : { kind: 'undecided' };
}

/** As people read them: all notes of the incident in one text. */
async function findInActivity(access: Access, sysId: string, mark: string): Promise<FoundNote> {
  const path = `incident/${sysId}?sysparm_fields=work_notes&sysparm_display_value=true`;
  const reading = servicenow(access, { method: 'GET', path, answer: Activity, timeoutMs: READ_TIMEOUT_MS });
  const notes = (await reading.catch(unlessForbidden))?.answer.result.work_notes;
  if (notes === undefined) return { kind: 'undecided' };
  return isMarked(notes, mark) ? { kind: 'found' } : { kind: 'absent' };
}

/** On a line of its own, as it was written. */
const isMarked = (text: string, mark: string) => text.split('\n').some((line) => line.trim() === markLine(mark));

export const markLine = (mark: string) => `[${mark}]`;

function unlessForbidden(error: unknown): undefined {
  if (!(error instanceof TargetRefused) || error.status !== FORBIDDEN) throw error;
}

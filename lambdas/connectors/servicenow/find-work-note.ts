import * as z from 'zod';
import type { Access } from '../connector.ts';
import { EXCHANGE_TIMEOUT_MS } from '../exchange.ts';
import { FORBIDDEN, OutcomeUnknown, unlessStatus } from '../target-errors.ts';
import { servicenow } from './client.ts';

/** One step writes a note and then reads it, possibly from two tables. */
const READ_TIMEOUT_MS = EXCHANGE_TIMEOUT_MS / 2;
/** The query contains the mark, so at most one entry is expected. */
const ENTRIES_MAX = 10;

const Entry = z.object({ sys_id: z.string(), element_id: z.string(), element: z.string(), value: z.string() });
const Entries = z.lazy(() => z.object({ result: z.array(Entry) }));
const Activity = z.lazy(() => z.object({ result: z.object({ work_notes: z.string().optional() }) }));

/** `absent` only if ServiceNow would have listed the note. */
export type FoundNote = { kind: 'found'; journalEntry?: string } | { kind: 'absent' } | { kind: 'undecided' };

/**
 * Finds a note by its mark. ServiceNow omits entries that an ACL hides and shows only their total count. It also ignores
 * query clauses that it does not understand, and then lists other notes. So each entry is compared with the mark, and an
 * empty list counts only if nothing was omitted. A query rule can hide even the count, so the incident's own field must
 * show its notes as well.
 */
export async function findNote(access: Access, sysId: string, mark: string): Promise<FoundNote> {
  const journal = await findEntry(access, sysId, mark);
  if (journal.kind === 'found') return journal;
  const activity = await findInActivity(access, sysId, mark);
  if (activity.kind === 'found') return activity;
  return journal.kind === 'absent' && activity.kind === 'absent' ? journal : { kind: 'undecided' };
}

/** The error for `undecided`. */
export const noteNotShown = () =>
  new OutcomeUnknown(
    'ServiceNow does not show whether the note exists: check the incident, and allow the credential to read work_notes and sys_journal_field',
  );

async function findEntry(access: Access, sysId: string, mark: string): Promise<FoundNote> {
  const query = encodeURIComponent(`element_id=${sysId}^element=work_notes^valueLIKE${mark}`);
  const fields = Object.keys(Entry.shape).join(',');
  const path = `sys_journal_field?sysparm_fields=${fields}&sysparm_limit=${ENTRIES_MAX}&sysparm_query=${query}`;
  const reading = servicenow(access, { method: 'GET', path, responseSchema: Entries, timeoutMs: READ_TIMEOUT_MS });
  const read = await reading.catch(unlessStatus(FORBIDDEN));
  if (!read) return { kind: 'undecided' };
  const { result } = read.body;
  const found = result.find((entry) => entry.element_id === sysId && isMarked(entry.value, mark));
  if (found) return { kind: 'found', journalEntry: found.sys_id };
  return read.header('x-total-count') === String(result.length) ? { kind: 'absent' } : { kind: 'undecided' };
}

/** Searches the incident's own field, which has all its notes as one text. */
async function findInActivity(access: Access, sysId: string, mark: string): Promise<FoundNote> {
  const path = `incident/${sysId}?sysparm_fields=work_notes&sysparm_display_value=true`;
  const reading = servicenow(access, { method: 'GET', path, responseSchema: Activity, timeoutMs: READ_TIMEOUT_MS });
  const notes = (await reading.catch(unlessStatus(FORBIDDEN)))?.body.result.work_notes;
  if (notes === undefined) return { kind: 'undecided' };
  return isMarked(notes, mark) ? { kind: 'found' } : { kind: 'absent' };
}

/** The mark is on its own line. */
const isMarked = (text: string, mark: string) => text.split('\n').some((line) => line.trim() === markLine(mark));

export const markLine = (mark: string) => `[${mark}]`;

import type { Clock, Log } from '../../entry/ports.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { dayOf, type LogEntry, logEntryId } from '../../run/log-entry.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import { signOnce } from '../signing/dsse.ts';
import { checkLogEnvelope } from '../verify/verify-daily-log.ts';
import { type DayLog, daysLater, logClaim, logDocumentKey, logEnvelopeKey, type PreviousDay } from './daily-log.ts';
import { DayEntries, type DayLogFile, entriesIn } from './day-entries.ts';

/** The log entries of sealed bundles by day, and the last closed day. */
export interface DailyLogRows {
  /** All entries of a day so far, strongly consistent, in any order, read page by page. */
  entries(tenant: string, day: string): AsyncIterable<LogEntry>;
  /** The last day whose log is written and signed. */
  lastClosed(tenant: string): Promise<PreviousDay | undefined>;
  saveLastClosed(tenant: string, closed: PreviousDay): Promise<void>;
}

interface LogCloser {
  rows: DailyLogRows;
  store: EvidenceStore;
  signer: Signer;
  clock: Clock;
  log: Log;
}

/** Longer than a sealer needs for an entry that it dated before midnight, including clock skew. */
export const CLOSING_MARGIN_MS = 15 * 60_000;
/** After a longer outage, several invocations close the days. */
export const DAYS_PER_INVOCATION_MAX = 31;
/** If no day was ever closed, the first is the earliest of this many days that has a bundle. */
const FIRST_DAY_SEARCH_DAYS = 7;

/**
 * Closes every past day in order. A day without bundles has a log, too, so that a missing log is noticed. Logs are
 * written once and are computed from rows, so crashes and concurrent invocations do no harm.
 */
export async function closeDays(closer: LogCloser, tenant: string): Promise<string[]> {
  const yesterday = daysLater(dayOf(new Date(closer.clock.now() - CLOSING_MARGIN_MS).toISOString()), -1);
  let previous = await closer.rows.lastClosed(tenant);
  const first = previous ? daysLater(previous.day, 1) : await firstDay(closer, tenant, yesterday);
  const closed: string[] = [];
  for (let day = first; day <= yesterday && closed.length < DAYS_PER_INVOCATION_MAX; day = daysLater(day, 1)) {
    previous = await closeDay(closer, tenant, day, previous);
    closed.push(day);
  }
  return closed;
}

async function firstDay({ rows }: LogCloser, tenant: string, yesterday: string): Promise<string> {
  for (let back = FIRST_DAY_SEARCH_DAYS - 1; back > 0; back -= 1) {
    const day = daysLater(yesterday, -back);
    for await (const _any of rows.entries(tenant, day)) return day;
  }
  return yesterday;
}

async function closeDay(
  closer: LogCloser,
  tenant: string,
  day: string,
  previous: PreviousDay | undefined,
): Promise<PreviousDay> {
  const entries = new DayEntries();
  // The log of the previous day may be as large as this one, so it is processed before this day's entries are read.
  if (previous) for await (const entry of stragglers(closer, tenant, previous)) entries.add(entry);
  for await (const entry of closer.rows.entries(tenant, day)) entries.add(entry);
  const { head, document } = await writeOnce(closer, entries, { tenant, day, previous: previous ?? null });
  const sha256 = sha256Hex(document);
  await signOnce(closer, {
    key: logEnvelopeKey(tenant, day),
    claim: logClaim(head, sha256),
    problem: (envelope, keys) => checkLogEnvelope(head, { document, envelope }, keys),
  });
  await closer.rows.saveLastClosed(tenant, { day, sha256 });
  closer.log.info('closed the evidence log of a day', { tenant, day, size: head.size, root: head.root });
  return { day, sha256 };
}

/** Bundles that were entered on a day after its log was closed. They go into the next log. */
async function* stragglers({ rows, store }: LogCloser, tenant: string, { day }: PreviousDay): AsyncGenerator<LogEntry> {
  const logged = new Set<string>();
  for (const entry of entriesIn(await store.get(logDocumentKey(tenant, day)))) logged.add(logEntryId(entry));
  for await (const entry of rows.entries(tenant, day)) if (!logged.has(logEntryId(entry))) yield entry;
}

/** Returns the stored log: this one, or one that an earlier invocation wrote and may not have signed. */
async function writeOnce(
  { store }: LogCloser,
  entries: DayEntries,
  facts: Pick<DayLog, 'tenant' | 'day' | 'previous'>,
): Promise<DayLogFile> {
  const key = logDocumentKey(facts.tenant, facts.day);
  const wanted = entries.log(facts);
  if (await store.putOnce(key, wanted.document, 'application/json')) return wanted;
  const there = await store.get(key);
  if (there.equals(wanted.document)) return wanted;
  const found = logIn(there, entries, facts);
  // A document that does not agree with the rows is never signed.
  if (!found) {
    throw new CountersignError('CHAIN_BROKEN', `${key} does not agree with the sealed bundles. Find out who wrote it`);
  }
  return found;
}

/** Parses a stored log; undefined if it has other entries than these. */
function logIn(
  document: Buffer,
  known: DayEntries,
  facts: Pick<DayLog, 'tenant' | 'day' | 'previous'>,
): DayLogFile | undefined {
  try {
    const entries = DayEntries.in(document);
    const rebuilt = entries.log(facts);
    return rebuilt.document.equals(document) && known.haveAll(entries) ? rebuilt : undefined;
  } catch {
    return undefined;
  }
}

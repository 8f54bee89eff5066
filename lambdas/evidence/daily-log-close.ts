import type { Clock, Log } from '../entry/ports.ts';
import { canonicalJson, sha256Hex } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import { dayOf, type LogEntry } from '../run/log-entry.ts';
import {
  buildDayLog,
  DayLog,
  daysLater,
  documentOf,
  logClaim,
  logDocumentKey,
  logEnvelopeKey,
  type PreviousDay,
} from './daily-log.ts';
import type { EvidenceStore, Signer } from './evidence-store.ts';
import { signOnce } from './sign-once.ts';
import { type HeldFiles, readLog } from './verify/daily-log-verify.ts';
import type { TrustedKey } from './verify/trusted-keys.ts';

/** The rows that sealing leaves, day by day, and how far they have become logs. */
export interface DailyLogRows {
  /** Everything entered on a day so far, strongly consistent, in no order. */
  entries(tenant: string, day: string): Promise<LogEntry[]>;
  /** The newest day whose log is written and signed. */
  lastClosed(tenant: string): Promise<PreviousDay | undefined>;
  saveLastClosed(tenant: string, closed: PreviousDay): Promise<void>;
}

export interface LogCloser {
  rows: DailyLogRows;
  store: EvidenceStore;
  signer: Signer;
  clock: Clock;
  log: Log;
}

/** Longer than a sealer can be at work on an entry that it dated before midnight, clocks that differ included. */
const CLOSING_MARGIN_MS = 15 * 60_000;
/** A closer that was away for longer takes more than one look to catch up. */
const DAYS_PER_LOOK_MAX = 31;
/** Nothing was ever closed: the first day is the earliest of so many that has a bundle. */
const FIRST_LOOK_DAYS = 7;

/**
 * Closes every day that is over, one after the other; a day without a bundle has a log too, so that a missing log shows.
 * Logs are written once and derive from rows alone: dying anywhere, or being there twice, changes nothing.
 */
export async function closeDays(closer: LogCloser, tenant: string): Promise<string[]> {
  const yesterday = daysLater(dayOf(new Date(closer.clock.now() - CLOSING_MARGIN_MS).toISOString()), -1);
  let previous = await closer.rows.lastClosed(tenant);
  const first = previous ? daysLater(previous.day, 1) : await firstDay(closer, tenant, yesterday);
  const closed: string[] = [];
  for (let day = first; day <= yesterday && closed.length < DAYS_PER_LOOK_MAX; day = daysLater(day, 1)) {
    previous = await closeDay(closer, tenant, day, previous);
    closed.push(day);
  }
  return closed;
}

async function firstDay({ rows }: LogCloser, tenant: string, yesterday: string): Promise<string> {
  for (let back = FIRST_LOOK_DAYS - 1; back > 0; back -= 1) {
    const day = daysLater(yesterday, -back);
    if ((await rows.entries(tenant, day)).length > 0) return day;
  }
  return yesterday;
}

async function closeDay(
  closer: LogCloser,
  tenant: string,
  day: string,
  previous: PreviousDay | undefined,
): Promise<PreviousDay> {
  const entries = await closer.rows.entries(tenant, day);
  if (previous) entries.push(...(await stragglers(closer, tenant, previous)));
  const wanted = buildDayLog({ tenant, day, previous: previous ?? null, entries });
  const log = await writeOnce(closer, wanted);
  const document = documentOf(log);
  const sha256 = sha256Hex(document);
  await signOnce(closer, {
    key: logEnvelopeKey(tenant, day),
    claim: logClaim(log, sha256),
    problem: (envelope, keys) => auditProblem({ tenant, name: day, document, envelope }, keys),
  });
  await closer.rows.saveLastClosed(tenant, { day, sha256 });
  closer.log.info('closed the evidence log of a day', { tenant, day, size: log.size, root: log.root });
  return { day, sha256 };
}

/** Bundles that were entered on a day after its log was closed: they are in the next one, never in none. */
async function stragglers({ rows, store }: LogCloser, tenant: string, { day }: PreviousDay): Promise<LogEntry[]> {
  const logged = parseLog(await store.get(logDocumentKey(tenant, day)));
  const there = new Set(logged.entries.map(({ runId }) => runId));
  return (await rows.entries(tenant, day)).filter(({ runId }) => !there.has(runId));
}

/** Returns the log that is there: this one, or one that an earlier closer wrote and may not have come to sign. */
async function writeOnce({ store }: LogCloser, wanted: DayLog): Promise<DayLog> {
  const key = logDocumentKey(wanted.tenant, wanted.day);
  const document = documentOf(wanted);
  if (await store.putOnce(key, document, 'application/json')) return wanted;
  const there = await store.get(key);
  if (there.equals(document)) return wanted;
  const log = parseLog(there);
  const known = new Set(wanted.entries.map((entry) => canonicalJson(entry)));
  const rebuilt = documentOf(buildDayLog({ ...wanted, entries: log.entries }));
  // A signature vouches for what was sealed: a document that rows do not account for is never signed.
  if (!there.equals(rebuilt) || !log.entries.every((entry) => known.has(canonicalJson(entry)))) {
    throw new CountersignError('CHAIN_BROKEN', `${key} was not made from what was sealed; find out who wrote it`);
  }
  return log;
}

function auditProblem(held: HeldFiles, keys: readonly TrustedKey[]): string | undefined {
  const read = readLog(held, keys);
  return 'problem' in read ? read.problem : undefined;
}

const parseLog = (document: Buffer): DayLog => DayLog.parse(JSON.parse(document.toString()));

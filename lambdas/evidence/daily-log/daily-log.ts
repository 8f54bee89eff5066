import * as z from 'zod';
import { canonicalJson } from '../../run/canonical-json.ts';
import { Sha256 } from '../../run/digest.ts';
import { dayOf, LogEntry, logEntryId } from '../../run/log-entry.ts';
import type { Claim } from '../signing/dsse.ts';
import { leafHash, merkleRoot } from './merkle.ts';

/**
 * The log of one day of a tenant: all bundles sealed on that day as leaves of a Merkle tree with a signed root, and the
 * hash of the previous day. A deleted bundle is still in the log, and the next log refers to a deleted log.
 */
const LOG_FORMAT = 'countersign.evidence-log/1';
const PREDICATE_TYPE = 'https://countersign.dev/evidence-log/v1';

const DAY_MS = 24 * 60 * 60 * 1000;

const Day = z.iso.date();

/** The log of the previous day. The days form a chain. */
export const PreviousDay = z.strictObject({ day: Day, sha256: Sha256 });
export type PreviousDay = z.infer<typeof PreviousDay>;

export const DayLog = z.strictObject({
  format: z.literal(LOG_FORMAT),
  tenant: z.string(),
  day: Day,
  /** Null on the first day. */
  previous: PreviousDay.nullable(),
  size: z.int().nonnegative(),
  root: Sha256,
  entries: z.array(LogEntry),
});
export type DayLog = z.infer<typeof DayLog>;

export const daysLater = (day: string, days: number): string =>
  dayOf(new Date(Date.parse(day) + days * DAY_MS).toISOString());

export const logDocumentKey = (tenant: string, day: string) => `log/${tenant}/${day}.json`;
export const logEnvelopeKey = (tenant: string, day: string) => `log/${tenant}/${day}.dsse.json`;

/** The same bundles in any order give the same log. */
export function buildDayLog(facts: Pick<DayLog, 'tenant' | 'day' | 'previous' | 'entries'>): DayLog {
  const entries = [...facts.entries].sort((a, b) => (positionOf(a) < positionOf(b) ? -1 : 1));
  return { ...dayLogHead(facts, entries.length, rootOf(entries)), entries };
}

export function dayLogHead(
  { tenant, day, previous }: Pick<DayLog, 'tenant' | 'day' | 'previous'>,
  size: number,
  root: string,
): Omit<DayLog, 'entries'> {
  return { format: LOG_FORMAT, tenant, day, previous, size, root };
}

export const documentOf = (log: DayLog): Buffer => Buffer.from(canonicalJson(log));

/** The signed facts: the hash of the document, and its root, so that an inclusion proof needs nothing else. */
export function logClaim({ tenant, day, size, root, previous }: Omit<DayLog, 'entries'>, sha256: string): Claim {
  return { subject: `${tenant}/${day}`, sha256, predicateType: PREDICATE_TYPE, predicate: { size, root, previous } };
}

function rootOf(entries: readonly LogEntry[]): string {
  const leaves = entries.map((entry) => leafHash(Buffer.from(canonicalJson(entry))));
  return merkleRoot(leaves).toString('hex');
}

/** Run ids, then the numbers of addenda, order entries of the same time. */
export const positionOf = (entry: LogEntry) => `${entry.sealedAt} ${logEntryId(entry)}`;

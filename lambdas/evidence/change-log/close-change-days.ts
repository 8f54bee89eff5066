import type { Clock, Log } from '../../entry/ports.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { dayOf } from '../../run/log-entry.ts';
import { CLOSING_MARGIN_MS, DAYS_PER_INVOCATION_MAX } from '../daily-log/close-days.ts';
import { daysLater, type PreviousDay } from '../daily-log/daily-log.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import { signOnce } from '../signing/dsse.ts';
import { checkChangeLogEnvelope, parseChangeLog } from '../verify/verify-change-log.ts';
import {
  buildChangeLog,
  type ChangeLog,
  changeLogClaim,
  changeLogDocument,
  changeLogEnvelopeKey,
  changeLogKey,
  type LoggedChange,
} from './change-log.ts';

/** The last signed day, and the first. */
export interface ClosedChanges extends PreviousDay {
  first: string;
}

export interface ChangeLogRows {
  /** The changes of a day, oldest first; with `andBefore` also all earlier ones. */
  changes(tenant: string, day: string, how?: { andBefore: boolean }): Promise<LoggedChange[]>;
  lastClosed(tenant: string): Promise<ClosedChanges | undefined>;
  saveLastClosed(tenant: string, closed: ClosedChanges): Promise<void>;
}

interface ChangeLogCloser {
  rows: ChangeLogRows;
  store: EvidenceStore;
  signer: Signer;
  clock: Clock;
  log: Log;
}

/**
 * Writes and signs a file with the changes of every past day, in order. Files are written once and computed from rows, so
 * crashes and concurrent invocations do no harm.
 */
export async function closeChangeDays(closer: ChangeLogCloser, tenant: string): Promise<string[]> {
  const yesterday = daysLater(dayOf(new Date(closer.clock.now() - CLOSING_MARGIN_MS).toISOString()), -1);
  let last = await closer.rows.lastClosed(tenant);
  const closed: string[] = [];
  for (
    let day = last ? daysLater(last.day, 1) : yesterday;
    day <= yesterday && closed.length < DAYS_PER_INVOCATION_MAX;
    day = daysLater(day, 1)
  ) {
    last = await closeDay(closer, tenant, day, last);
    closed.push(day);
  }
  return closed;
}

async function closeDay(
  closer: ChangeLogCloser,
  tenant: string,
  day: string,
  last: ClosedChanges | undefined,
): Promise<ClosedChanges> {
  const { rows, log } = closer;
  const previous = last ? { day: last.day, sha256: last.sha256 } : null;
  const own = await rows.changes(tenant, day, { andBefore: last === undefined });
  const changes = [...(last ? await stragglers(closer, tenant, last.day) : []), ...own];
  const { file, document } = await writeOnce(closer, { tenant, day, previous }, changes);
  const sha256 = sha256Hex(document);
  await signOnce(closer, {
    key: changeLogEnvelopeKey(tenant, day),
    claim: changeLogClaim(file, sha256),
    problem: (envelope, keys) => checkChangeLogEnvelope(file, { document, envelope }, keys),
  });
  const closed = { day, sha256, first: last?.first ?? day };
  await rows.saveLastClosed(tenant, closed);
  log.info('closed the changes of a day', { tenant, day, size: file.changes.length });
  return closed;
}

/** Changes that were written after the file of their day. */
async function stragglers({ rows, store }: ChangeLogCloser, tenant: string, day: string): Promise<LoggedChange[]> {
  const ids = idsIn(await store.get(changeLogKey(tenant, day)));
  return (await rows.changes(tenant, day)).filter(({ changeId }) => !ids.has(changeId));
}

/** Returns the stored file: this one, or one that an earlier invocation wrote and may not have signed. */
async function writeOnce(
  { store }: ChangeLogCloser,
  facts: Pick<ChangeLog, 'tenant' | 'day' | 'previous'>,
  changes: LoggedChange[],
): Promise<{ file: ChangeLog; document: Buffer }> {
  const key = changeLogKey(facts.tenant, facts.day);
  const wanted = buildChangeLog(facts, changes);
  const document = changeLogDocument(wanted);
  if (await store.putOnce(key, document, 'application/json')) return { file: wanted, document };
  const there = await store.get(key);
  const ids = idsIn(there);
  // A change that was recorded after this file was written is in the next one.
  const file = buildChangeLog(
    facts,
    changes.filter(({ changeId }) => ids.has(changeId)),
  );
  if (changeLogDocument(file).equals(there)) return { file, document: there };
  throw new CountersignError(
    'CHAIN_BROKEN',
    `${key} does not agree with the history of changes. Find out who wrote it`,
  );
}

const idsIn = (document: Buffer): Set<string> =>
  new Set(parseChangeLog(document)?.changes.map(({ changeId }) => changeId));

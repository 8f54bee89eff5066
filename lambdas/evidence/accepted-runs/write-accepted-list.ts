import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import type { Clock, Log } from '../../entry/ports.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { later } from '../../run/lease.ts';
import { RUN_DEADLINE_MS, type Run } from '../../run/run.ts';
import { CLOSING_MARGIN_MS } from '../daily-log/close-days.ts';
import type { PreviousDay } from '../daily-log/daily-log.ts';
import type { EvidenceStore, Signer } from '../evidence-store.ts';
import { signOnce } from '../signing/dsse.ts';
import { checkAcceptedEnvelope } from '../verify/audit-accepted.ts';
import {
  AcceptedList,
  type AcceptedRun,
  acceptedEnvelopeKey,
  acceptedListClaim,
  acceptedListDocument,
  acceptedListKey,
  buildAcceptedList,
  type OpenRun,
  type PreviousList,
} from './accepted-list.ts';

/** How far the lists are written. */
export interface AcceptedState {
  last?: PreviousList;
  /** The list that is being written. After a crash it is completed before another is begun. */
  writing: { from: string; until: string };
}

/** The rows of accepted runs. */
export interface AcceptedRows {
  /** Runs accepted at `from` or later and before `until`, in any order, read page by page. */
  accepted(tenant: string, from: string, until: string): AsyncIterable<AcceptedRun>;
  /** The ids of those that have a sealed bundle. */
  sealed(tenant: string, runIds: readonly string[]): Promise<Set<string>>;
  runs(tenant: string, runIds: readonly string[]): Promise<Run[]>;
  /** The hash of each commit that exists, by run id. */
  commitHashes(tenant: string, commits: readonly { runId: string; count: number }[]): Promise<Map<string, string>>;
  state(tenant: string): Promise<AcceptedState | undefined>;
  /** Replaces the state that was read. False, with nothing written, if another invocation was first. */
  saveState(tenant: string, read: AcceptedState | undefined, state: AcceptedState): Promise<boolean>;
  lastClosed(tenant: string): Promise<PreviousDay | undefined>;
}

export interface ListWriter {
  rows: AcceptedRows;
  store: EvidenceStore;
  signer: Signer;
  clock: Clock;
  log: Log;
}

const HOUR_MS = 60 * 60_000;
/** The index of accepted runs is eventually consistent. What it shows later than this is in the next list. */
const LATE_MS = HOUR_MS;

/**
 * Writes and signs the list of the runs that were accepted up to the last full hour. After an outage one list covers several
 * hours. Returns the end of each written list. Lists are written once, and an invocation stops if another one has changed the
 * state: otherwise a slow invocation could set it back, and the next list would cover hours that are listed already.
 */
export async function writeAcceptedLists(writer: ListWriter, tenant: string): Promise<string[]> {
  const { rows, clock } = writer;
  const until = hourOf(clock.now() - CLOSING_MARGIN_MS);
  const written: string[] = [];
  let state = await rows.state(tenant);
  if (state && state.last?.until !== state.writing.until) {
    written.push(state.writing.until);
    state = await writeList(writer, tenant, state);
    if (!state) return written;
  }
  const from = state?.last?.until ?? hourOf(Date.parse(until) - HOUR_MS);
  if (from >= until) return written;
  const begun: AcceptedState = { ...state, writing: { from, until } };
  if (!(await rows.saveState(tenant, state, begun))) return written;
  await writeList(writer, tenant, begun);
  return [...written, until];
}

const hourOf = (ms: number) => new Date(Math.floor(ms / HOUR_MS) * HOUR_MS).toISOString();

/** Returns the new state; undefined if another invocation has changed it. */
async function writeList(writer: ListWriter, tenant: string, state: AcceptedState): Promise<AcceptedState | undefined> {
  const { rows, log } = writer;
  const { last, writing } = state;
  const built = await currentList(writer, tenant, state);
  const { list, document } = await storeOnce(writer, built);
  const sha256 = sha256Hex(document);
  await signOnce(writer, {
    key: acceptedEnvelopeKey(tenant, writing.until),
    claim: acceptedListClaim(list, sha256),
    problem: (envelope, keys) => checkAcceptedEnvelope(list, { document, envelope }, keys),
  });
  const done = { ...state, last: { until: writing.until, sha256 } };
  if (!(await rows.saveState(tenant, state, done))) return undefined;
  const { accepted, open } = list;
  log.info('listed accepted runs', {
    tenant,
    from: last?.until,
    until: writing.until,
    size: accepted.length,
    open: open.length,
  });
  return done;
}

async function currentList({ rows, store }: ListWriter, tenant: string, state: AcceptedState): Promise<AcceptedList> {
  const { last = null, writing } = state;
  const before = last && listIn(await store.get(acceptedListKey(tenant, last.until)));
  const listed = new Set(before?.accepted.map(({ runId }) => runId));
  const accepted: AcceptedRun[] = [];
  // A list covers an hour or more, so the previous one has everything that was known of this time.
  const lateSince = before ? later(writing.from, -LATE_MS) : writing.from;
  for await (const run of rows.accepted(tenant, lateSince, writing.until)) {
    if (!listed.has(run.runId)) accepted.push(run);
  }
  const lastLog = (await rows.lastClosed(tenant)) ?? null;
  const open = await openRuns(rows, tenant, [...(before?.open ?? []), ...accepted], writing.until);
  return buildAcceptedList({ tenant, ...writing, previous: last, lastLog, accepted, open });
}

/** Those of the runs that are not sealed, with the end of their chain. */
async function openRuns(
  rows: AcceptedRows,
  tenant: string,
  candidates: readonly (AcceptedRun | OpenRun)[],
  at: string,
): Promise<OpenRun[]> {
  const ids = candidates.map(({ runId }) => runId);
  const sealed = await rows.sealed(tenant, ids);
  const unsealed = candidates.filter(({ runId }) => !sealed.has(runId));
  const found = await rows.runs(
    tenant,
    unsealed.map(({ runId }) => runId),
  );
  const byId = new Map(found.map((run) => [run.runId, run]));
  return unsealed.map((each) => {
    const run = byId.get(each.runId);
    if (run) return openRun(run, at);
    return { deadlineAt: later(each.acceptedAt, RUN_DEADLINE_MS), ...each, status: 'missing' };
  });
}

function openRun(
  { runId, createdAt, status, deadlineAt, waitingForPeopleSince, headHash, seq }: Run,
  at: string,
): OpenRun {
  const waitedMs = waitingForPeopleSince === undefined ? 0 : Date.parse(at) - Date.parse(waitingForPeopleSince);
  const deadline = later(deadlineAt, Math.max(0, waitedMs));
  return { runId, acceptedAt: createdAt, status, deadlineAt: deadline, head: headHash, count: seq };
}

/** Returns the stored list: this one, or one that an earlier invocation wrote and may not have signed. */
async function storeOnce(
  { rows, store }: ListWriter,
  wanted: AcceptedList,
): Promise<{ list: AcceptedList; document: Buffer }> {
  const { tenant, until } = wanted;
  const key = acceptedListKey(tenant, until);
  const document = acceptedListDocument(wanted);
  if (await store.putOnce(key, document, 'application/json')) return { list: wanted, document };
  const there = await store.get(key);
  const list = listIn(there);
  if (list && (await agreesWithRows(rows, list, wanted))) return { list, document: there };
  // A document that does not agree with the rows is never signed.
  throw new CountersignError('CHAIN_BROKEN', `${key} does not agree with the accepted runs. Find out who wrote it`);
}

const listIn = (document: Buffer): AcceptedList | undefined => {
  const { data } = AcceptedList.safeParse(tryParseJsonBytes(document));
  return data && acceptedListDocument(buildAcceptedList(data)).equals(document) ? data : undefined;
};

/** A run may have ended or gone on since, but its chain has the commit that was its head. */
async function agreesWithRows(rows: AcceptedRows, list: AcceptedList, now: AcceptedList): Promise<boolean> {
  const { tenant, from, until, previous, accepted, open } = list;
  const isOfSameTime = tenant === now.tenant && from === now.from && until === now.until;
  if (!isOfSameTime || previous?.sha256 !== now.previous?.sha256) return false;
  const known = new Map(now.accepted.map((run) => [run.runId, run.acceptedAt]));
  if (!accepted.every(({ runId, acceptedAt }) => known.get(runId) === acceptedAt)) return false;
  const listed = new Set(accepted.map(({ runId }) => runId));
  const wereOpen = new Set(open.map(({ runId }) => runId));
  const isLate = (runId: string) => known.has(runId) && !listed.has(runId);
  if (!now.open.every(({ runId }) => wereOpen.has(runId) || isLate(runId))) return false;
  const heads = open.flatMap(({ runId, head, count }) => (head && count ? [{ runId, head, count }] : []));
  const hashes = await rows.commitHashes(tenant, heads);
  return heads.every(({ runId, head }) => hashes.get(runId) === head);
}

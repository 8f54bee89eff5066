import { tryParseJsonBytes } from '../../entry/parse-json.ts';
import { canonicalJson, sha256Hex } from '../../run/canonical-json.ts';
import { dayOf } from '../../run/log-entry.ts';
import {
  AcceptedList,
  acceptedListClaim,
  acceptedListDocument,
  buildAcceptedList,
  listName,
  type OpenRun,
  type PreviousList,
} from '../accepted-runs/accepted-list.ts';
import { daysLater } from '../daily-log/daily-log.ts';
import type { TrustedKey } from './trusted-keys.ts';
import { checkSignedDay, type HeldFiles, unread } from './verify-daily-log.ts';

const DAY_MS = 24 * 60 * 60_000;

const WHAT = 'its list of accepted runs';

export const checkAcceptedEnvelope = (
  list: AcceptedList,
  { document, envelope }: { document: Buffer; envelope: Buffer | undefined },
  keys: readonly TrustedKey[],
): string | undefined =>
  checkSignedDay(WHAT, lastDayOf(list), acceptedListClaim(list, sha256Hex(document)), envelope, keys);

/** `until` is not part of the list, so a list up to midnight is of the day before. */
const lastDayOf = ({ until }: AcceptedList) => dayOf(new Date(Date.parse(until) - 1).toISOString());

/** Where a run's chain of commits ended when a list was written. */
export interface AnchoredHead {
  head: string;
  count: number;
  until: string;
}

export interface AcceptedAudit {
  findings: { about: string; problem: string }[];
  lists: number;
  /** When each run was accepted, by its id. */
  accepted: ReadonlyMap<string, string>;
  heads: ReadonlyMap<string, readonly AnchoredHead[]>;
  /** Of the last list. */
  open: ReadonlyMap<string, OpenRun>;
  until: string | undefined;
}

interface AuditedLists {
  keys: readonly TrustedKey[];
  from: string | undefined;
  through: string;
  /** The SHA-256 of each daily log. */
  logs: ReadonlyMap<string, string>;
}

/** Checks the lists of accepted runs of one tenant: signatures, and that they follow each other without a gap. */
export function readAcceptedLists(held: readonly HeldFiles[], terms: AuditedLists): AcceptedAudit {
  const findings: AcceptedAudit['findings'] = [];
  const find = (about: string, problem: string) => findings.push({ about, problem });
  const accepted = new Map<string, string>();
  const heads = new Map<string, AnchoredHead[]>();
  let open: ReadonlyMap<string, OpenRun> = new Map();
  let before: PreviousList | undefined;
  const { from = '' } = terms;
  const wanted = held.filter(({ name }) => name >= from).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const file of wanted) {
    const read = readList(file, terms.keys);
    if ('problem' in read) find(file.name, read.problem);
    const { list } = read;
    if (!list) continue;
    const problem = gapBefore(list, before, terms);
    if (problem !== undefined) find(file.name, problem);
    for (const run of list.accepted) accepted.set(run.runId, run.acceptedAt);
    open = new Map(list.open.map((run) => [run.runId, run]));
    for (const { runId, head, count } of list.open) {
      if (!head || !count) continue;
      const known = heads.get(runId) ?? [];
      known.push({ head, count, until: list.until });
      heads.set(runId, known);
    }
    before = { until: list.until, sha256: sha256Hex(file.document) };
  }
  const end = new Date(Date.parse(daysLater(terms.through, 1))).toISOString();
  if (before && before.until < end) {
    find(listName(before.until), `is the last list of accepted runs; those up to ${listName(end)} are missing`);
  }
  return { findings, lists: wanted.length, accepted, heads, open, until: before?.until };
}

function readList(
  held: HeldFiles,
  keys: readonly TrustedKey[],
): { list?: AcceptedList; problem: string } | { list: AcceptedList } {
  const { data: list } = AcceptedList.safeParse(tryParseJsonBytes(held.document));
  if (!list) return { problem: unread(WHAT, held) };
  if (list.tenant !== held.tenant || listName(list.until) !== held.name) {
    return { list, problem: `${WHAT} is that of ${list.tenant}, ${listName(list.until)}, under another name` };
  }
  if (!acceptedListDocument(buildAcceptedList(list)).equals(held.document)) {
    return { list, problem: `${WHAT} was edited: it is not in canonical form` };
  }
  const problem = checkAcceptedEnvelope(list, held, keys);
  return problem === undefined ? { list } : { list, problem };
}

function gapBefore(list: AcceptedList, before: PreviousList | undefined, terms: AuditedLists): string | undefined {
  const { previous, from, lastLog } = list;
  if (lastLog && terms.logs.has(lastLog.day) && terms.logs.get(lastLog.day) !== lastLog.sha256) {
    return `was made after another log of ${lastLog.day} than the one that is here`;
  }
  if (!before) {
    if (!previous || terms.from !== undefined) return undefined;
    return `follows the list of accepted runs of ${listName(previous.until)}, which is missing with all before it (or give --from)`;
  }
  if (canonicalJson(previous) === canonicalJson(before) && from === before.until) return undefined;
  return before.until < from
    ? `the lists of accepted runs from ${listName(before.until)} to ${listName(from)} are missing`
    : `was made after another list of ${listName(before.until)} than the one that is here`;
}

/**
 * What is wrong with a run that was accepted and is in no daily log. Nothing if its bundle is here and waits for the next
 * log, or if it is open and its deadline has not passed for a day.
 */
export function checkUnsealed(runId: string, audit: AcceptedAudit, hasBundle: boolean): string | undefined {
  const { accepted, open, until = '' } = audit;
  if (hasBundle) return undefined;
  const acceptedAt = accepted.get(runId) ?? open.get(runId)?.acceptedAt;
  const run = open.get(runId);
  if (!run) return `was accepted ${acceptedAt}, is no longer open, and has neither a bundle here nor an entry in a log`;
  const overdueMs = Date.parse(until) - Date.parse(run.deadlineAt);
  if (overdueMs <= DAY_MS) return undefined;
  const state = run.status === 'missing' ? 'its row is missing' : `it is ${run.status}`;
  return `was accepted ${acceptedAt} and is not sealed, more than a day after its deadline ${run.deadlineAt}: ${state}`;
}

/** Compares a bundle with the heads that lists have of its run. */
export function checkHeads(
  commits: readonly { seq: number; hash: string }[],
  heads: readonly AnchoredHead[],
): string | undefined {
  const lost = heads.find(({ head, count }) => commits[count - 1]?.hash !== head);
  return (
    lost && `has another commit ${lost.count} than the list of accepted runs of ${listName(lost.until)}: ${lost.head}`
  );
}

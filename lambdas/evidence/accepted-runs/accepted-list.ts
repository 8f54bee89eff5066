import * as z from 'zod';
import { canonicalJson } from '../../run/canonical-json.ts';
import { Sha256 } from '../../run/digest.ts';
import { PreviousDay } from '../daily-log/daily-log.ts';
import type { Claim } from '../signing/dsse.ts';

/**
 * The signed list of the runs that were accepted since the previous list, about an hour. A bundle that is never sealed is
 * in no daily log, but its run is in such a list. Each list has the hash of the one before it.
 */
const LIST_FORMAT = 'countersign.accepted-runs/1';
const PREDICATE_TYPE = 'https://countersign.dev/accepted-runs/v1';

const Time = z.iso.datetime({ precision: 3 });

export const PreviousList = z.strictObject({ until: Time, sha256: Sha256 });
export type PreviousList = z.infer<typeof PreviousList>;

export const AcceptedRun = z.strictObject({ runId: z.string(), acceptedAt: Time });
export type AcceptedRun = z.infer<typeof AcceptedRun>;

/** A run that was accepted and is not sealed yet, also one of an earlier list. */
export const OpenRun = AcceptedRun.extend({
  /** `missing`: its row was deleted. */
  status: z.string(),
  /** Including the time that it has waited for people so far. */
  deadlineAt: Time,
  /** Where its chain of commits ends now. The bundle must contain this commit. */
  head: Sha256.optional(),
  count: z.int().positive().optional(),
});
export type OpenRun = z.infer<typeof OpenRun>;

export const AcceptedList = z.strictObject({
  format: z.literal(LIST_FORMAT),
  tenant: z.string(),
  /** Accepted at this time or later, and before `until`. */
  from: Time,
  until: Time,
  /** Null in the first list. */
  previous: PreviousList.nullable(),
  /** The last daily log when the list was written. */
  lastLog: PreviousDay.nullable(),
  accepted: z.array(AcceptedRun),
  open: z.array(OpenRun),
});
export type AcceptedList = z.infer<typeof AcceptedList>;

/** A list ends with an hour, which names it: `2026-03-02T11`. */
export const listName = (until: string): string => until.slice(0, 'yyyy-mm-ddThh'.length);
export const acceptedListKey = (tenant: string, until: string) => `log/${tenant}/accepted/${listName(until)}.json`;
export const acceptedEnvelopeKey = (tenant: string, until: string) =>
  `log/${tenant}/accepted/${listName(until)}.dsse.json`;

/** The same runs in any order give the same list. */
export function buildAcceptedList(list: Omit<AcceptedList, 'format'>): AcceptedList {
  const { accepted, open } = list;
  return { format: LIST_FORMAT, ...list, accepted: accepted.toSorted(inOrder), open: open.toSorted(inOrder) };
}

const placeOf = ({ acceptedAt, runId }: AcceptedRun) => `${acceptedAt} ${runId}`;
const inOrder = (a: AcceptedRun, b: AcceptedRun) => (placeOf(a) < placeOf(b) ? -1 : 1);

export const acceptedListDocument = (list: AcceptedList): Buffer => Buffer.from(canonicalJson(list));

export function acceptedListClaim(list: AcceptedList, sha256: string): Claim {
  const { tenant, from, until, previous, lastLog, accepted, open } = list;
  return {
    subject: `${tenant}/accepted/${listName(until)}`,
    sha256,
    predicateType: PREDICATE_TYPE,
    predicate: { from, until, previous, lastLog, accepted: accepted.length, open: open.length },
  };
}

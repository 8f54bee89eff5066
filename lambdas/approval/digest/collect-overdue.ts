import { outboxEntryId } from '../../outbox/outbox.ts';
import { type Approval, isOpen, runIdOf } from '../../run/approval.ts';
import { later } from '../../run/lease.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { DigestState } from './digest-store.ts';

/** A digest has at most this many approvals; further ones wait until some of them are closed. */
const LISTED_MAX = 500;
/** Entries of the outbox that are read to find overdue approvals. An entry beyond them is found by its own message. */
const ENTRIES_READ_MAX = 2_000;
/** After a digest, newly overdue approvals are collected for this long. PagerDuty is alerted at once. */
const BETWEEN_DIGESTS_MS = 5 * 60_000;

export interface Collected {
  /** Open and overdue, the longest overdue first. */
  approvals: Approval[];
  /** Those of them that no digest has listed. */
  added: Approval[];
  /** Outbox entries that need no digest: a digest has listed their approval, or it is closed. */
  completed: string[];
}

export const listEntryId = (tenant: string, approvalId: string): string =>
  outboxEntryId({ kind: 'list_overdue', tenant, runId: runIdOf(approvalId), approvalId });

/** The overdue approvals of a channel; `asked` are those of the message. `state` is read before: if another digest lists them meanwhile, the claim fails. */
export async function collectOverdue(
  runs: Pick<RunStore, 'openOutbox' | 'approvals'>,
  { tenant, channel, listed }: DigestState,
  { asked, now }: { asked: readonly string[]; now: string },
): Promise<Collected> {
  const { entries } = await runs.openOutbox(tenant, ENTRIES_READ_MAX);
  const waiting = [...asked, ...entries.flatMap((entry) => (entry.kind === 'list_overdue' ? [entry.approvalId] : []))];
  const read = await runs.approvals(tenant, [...listed, ...waiting]);
  const inChannel = read.filter((approval) => approval.channel === channel);
  const isListed = (approval: Approval) => listed.includes(approval.approvalId);
  const open = inChannel
    .filter((approval) => isOpen(approval) && approval.escalatedAt !== undefined && approval.expiresAt > now)
    .sort((a, b) => (a.slaAt < b.slaAt ? -1 : 1));
  const before = open.filter(isListed);
  const added = open.filter((approval) => !isListed(approval)).slice(0, LISTED_MAX - before.length);
  return {
    approvals: open.filter((approval) => before.includes(approval) || added.includes(approval)),
    added,
    completed: inChannel
      .filter((approval) => waiting.includes(approval.approvalId) && (isListed(approval) || !isOpen(approval)))
      .map((approval) => listEntryId(tenant, approval.approvalId)),
  };
}

/** True if there are newly overdue approvals and the last digest was some time ago, or if it is time to repeat it. */
export function isDigestDue({ posted }: DigestState, { approvals, added }: Collected, now: string): boolean {
  if (!posted) return added.length > 0;
  if (approvals.length > 0 && posted.repeatAt <= now) return true;
  return added.length > 0 && later(posted.at, BETWEEN_DIGESTS_MS) <= now;
}

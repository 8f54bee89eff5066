import { voteOf } from '../../approval/check-decision.ts';
import type { Decider } from '../../approval/decide.ts';
import { isoNow } from '../../entry/ports.ts';
import { type Approval, closedAt, closedListOf, isOpen } from '../../run/approval.ts';
import { CountersignError } from '../../run/errors.ts';
import type { Page } from '../../run/run-store.ts';
import type { Caller } from '../authorizer/caller.ts';
import { PAGE_MAX } from '../contract/schemas.ts';
import { cutToFit } from '../response-size.ts';

interface Wanted {
  status: 'pending' | 'decided' | 'approved' | 'rejected' | 'expired' | 'canceled';
  /** Only those that the caller may decide; of closed ones, those that the caller voted on or edited. */
  mine: boolean;
  limit: number;
  after?: string;
}

/**
 * One page of approvals in two requests to DynamoDB. A filter that has no index reads as many keys as one request returns,
 * so its page may have fewer approvals than the limit, and still a next page.
 */
export async function listApprovals(
  ports: Decider,
  caller: Caller,
  { status, mine, limit, after }: Wanted,
): Promise<Page<Approval>> {
  const isFiltered = mine || status === 'approved' || status === 'rejected';
  const place = { limit: isFiltered ? PAGE_MAX : limit, ...(after !== undefined && { after }) };
  const found =
    status === 'pending'
      ? await ports.runs.pendingApprovals(caller.tenant, place)
      : await ports.runs.closedApprovals(caller.tenant, {
          list: status === 'decided' ? status : closedListOf(status),
          ...place,
        });
  const isMine = mine ? await ownApprovals(ports, caller) : () => true;
  const wanted = found.items.filter(
    (approval) =>
      (status !== 'approved' && status !== 'rejected' ? true : approval.status === status) && isMine(approval),
  );
  const items = wanted.slice(0, limit);
  const last = items.at(-1);
  const cut = last && items.length < wanted.length ? { next: placeOf(last) } : found.next && { next: found.next };
  return cutToFit({ items, ...cut }, placeOf);
}

const placeOf = (approval: Approval): string =>
  `${isOpen(approval) ? approval.requestedAt : closedAt(approval)} ${approval.approvalId}`;

async function ownApprovals(ports: Decider, caller: Caller): Promise<(approval: Approval) => boolean> {
  const people = await ports.definitions.people(caller.tenant);
  const at = isoNow(ports.clock);
  const { person } = caller;
  const hasActed = ({ votes, edits }: Approval) => [...votes, ...edits].some((acted) => acted.person === person);
  return (approval) => {
    if (!isOpen(approval)) return hasActed(approval);
    if (approval.votes.some((vote) => vote.person === person)) return false;
    const { approvalId, actionHash } = approval;
    try {
      voteOf(people, approval, { ...caller, approvalId, actionHash, decision: { kind: 'approve' }, via: 'api' }, at);
      return true;
    } catch (error) {
      if (error instanceof CountersignError) return false;
      throw error;
    }
  };
}

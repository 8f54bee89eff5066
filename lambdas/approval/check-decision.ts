import { mayDecide } from '../people/eligibility.ts';
import type { Person } from '../people/people.ts';
import { effectiveRole, may, type Role } from '../people/rights.ts';
import { makersNow } from '../people/votes.ts';
import type { Approval, ApprovalStatus, Vote } from '../run/approval.ts';
import { CountersignError } from '../run/errors.ts';

export type Decision =
  | { kind: 'approve' }
  | { kind: 'reject'; reason: string }
  /** The write with these fields instead. Everyone but the editor is asked again. */
  | { kind: 'edit'; fields: Record<string, unknown> };

/** Over the API, from a console too, with the role of the credential: a key may have fewer rights than its person. */
type CameBy = { via: 'api' | 'console'; role: Role } | { via: 'slack' | 'console'; role?: undefined };

export type Deciding = CameBy & {
  tenant: string;
  approvalId: string;
  decision: Decision;
  person: string;
  /** The hash of the write that the person saw. If it differs from the approval's, the decision is refused. */
  actionHash: string;
};

/** The vote of a person who may decide; anyone else is refused with the reason. */
export function voteOf(people: readonly Person[], approval: Approval, deciding: Deciding, at: string): Vote {
  const { person: id, via, decision } = deciding;
  const person = people.find((each) => each.id === id);
  if (!person) throw new CountersignError('APPROVAL_FORBIDDEN', `${id} is not known here; ask an admin to add you`);
  const makers = makersNow(approval, people);
  if (makers.includes(id)) {
    throw new CountersignError('APPROVAL_SELF', 'you had a hand in this write, so someone else must decide on it');
  }
  const voter = withRightsOfKey(person, deciding, approval);
  const eligible = mayDecide(voter, people, approval.requirement, makers, at);
  if (!eligible.may) throw new CountersignError('APPROVAL_FORBIDDEN', eligible.why);
  const vote = decision.kind === 'reject' ? ('reject' as const) : ('approve' as const);
  const { onBehalfOf } = eligible;
  const { role, tier, groups } = people.find((each) => each.id === onBehalfOf) ?? voter;
  const rights = { role, tier, groups };
  return { person: id, via, decision: vote, at, rights, ...(onBehalfOf !== undefined && { onBehalfOf }) };
}

/** The person with the rights that their role and the role of their key share. */
function withRightsOfKey(person: Person, deciding: Deciding, { requirement }: Approval): Person {
  const { role } = deciding;
  // In Slack people act as themselves.
  if (role === undefined) return person;
  const mayApprove = may(role, 'approvals:decide') || (requirement.operators && may(role, 'runs:control'));
  if (role !== person.role && !mayApprove) {
    throw new CountersignError(
      'APPROVAL_FORBIDDEN',
      `a key for the role ${role} may not decide; use one for your own, ${person.role}`,
    );
  }
  return { ...person, role: effectiveRole(role, person) };
}

/** The clock decides, even if no worker has recorded the expiry yet. */
export function assertInTime({ expiresAt }: Approval, at: string): void {
  if (expiresAt > at) return;
  throw new CountersignError('APPROVAL_CLOSED', `the approval expired at ${expiresAt}; nothing was written`);
}

const DECISIVE_VOTE: Partial<Record<ApprovalStatus, Vote['decision']>> = { approved: 'approve', rejected: 'reject' };

export function closed({ status, votes, decidedAt }: Approval): CountersignError {
  const deciders = votes.filter(({ decision }) => decision === DECISIVE_VOTE[status]);
  const who = deciders.map(({ person }) => person).join(' and ');
  const ended = status === 'expired' ? 'expired' : `was ${status}`;
  return new CountersignError(
    'APPROVAL_CLOSED',
    `the approval ${ended}${who ? ` by ${who}` : ''} at ${decidedAt}; your decision is no longer needed`,
  );
}

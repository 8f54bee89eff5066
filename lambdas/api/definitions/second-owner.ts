import { Problem } from '../../entry/http.ts';
import { isoNow } from '../../entry/ports.ts';
import type { Person } from '../../people/people.ts';
import { whyNotCounted } from '../../people/provenance.ts';
import type { ChangeAuthor, PendingChange, PendingPerson, PendingPolicies } from '../../pipeline/definition-changes.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { later } from '../../run/lease.ts';

/** A pending change expires unless another owner confirms it within this time. */
const PENDING_EXPIRES_AFTER_MS = 7 * 24 * 60 * 60 * 1000;
/** Nobody would read more than these before confirming. */
const PENDING_MAX = 50;

type Stored = 'changeId' | 'requestedBy' | 'requestedAt' | 'expiresAt';

interface Request<Pending extends PendingChange> {
  people: readonly Person[];
  requested: Omit<Pending, Stored>;
  /** The definition now, for the history. */
  before: object | null;
}

/** Stores a change of a prod stage until an owner who did not request it confirms it. */
export async function requestSecondOwner<Pending extends PendingPerson | PendingPolicies>(
  { definitions }: { definitions: Pick<Definitions, 'pendingChanges' | 'requestChange'> },
  tenant: string,
  by: ChangeAuthor,
  { people, requested, before }: Request<Pending>,
): Promise<Pending> {
  if (!people.some(({ id, role }) => role === 'owner' && id !== by.actor)) {
    const why = `${WHY[requested.kind]} (${requested.widens.join('; ')})`;
    throw new Problem(
      422,
      requested.kind === 'person' ? 'PERSON_INVALID' : 'POLICY_INVALID',
      `${why}, and there is no second owner to confirm it; the operator of the stage can add one, see docs/administration.md, "A second owner"`,
    );
  }
  const open = await definitions.pendingChanges(tenant, { limit: PENDING_MAX });
  if (open.length >= PENDING_MAX) {
    throw new Problem(409, 'CONFLICT', `${PENDING_MAX} changes wait for a second owner; confirm or reject some first`);
  }
  const stored: Pick<PendingChange, Stored> = {
    changeId: by.changeId,
    requestedBy: by.actor,
    requestedAt: by.at,
    expiresAt: later(by.at, PENDING_EXPIRES_AFTER_MS),
  };
  const pending = { ...requested, ...stored } as Pending;
  await definitions.requestChange(tenant, pending, by, before);
  return pending;
}

const WHY = { person: 'this widens who may approve', policies: 'this loosens the policies' };

/** The response to a request for a change that is not made yet. */
export const accepted = <Pending extends PendingChange>(pending: Pending) => ({
  status: 202 as const,
  body: { pending, next: `another owner must confirm it: countersign changes confirm ${pending.changeId}` },
});

/** The second owner must be independent of the person who requested the change. */
export function assertIndependent(
  people: readonly Person[],
  owner: string,
  { requestedBy }: PendingChange,
  clock: Parameters<typeof isoNow>[0],
): void {
  const confirmer = people.find(({ id }) => id === owner);
  if (!confirmer || owner === requestedBy) {
    throw new Problem(403, 'FORBIDDEN', `${requestedBy} requested this change; another owner must confirm it`);
  }
  const uncounted = whyNotCounted(confirmer, [requestedBy], isoNow(clock));
  if (uncounted !== undefined) throw new Problem(403, 'FORBIDDEN', uncounted);
  const requester = people.find(({ id }) => id === requestedBy);
  if (requester?.rights?.dependsOn.includes(owner)) {
    throw new Problem(
      403,
      'FORBIDDEN',
      `you gave ${requestedBy} their rights; an owner who did not must confirm this change`,
    );
  }
}

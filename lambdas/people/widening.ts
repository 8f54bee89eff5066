import { RISKS } from '../connectors/connector.ts';
import type { Person } from './people.ts';
import { may, type Right, type Role } from './rights.ts';

/** Rights to approve, or to decide who may: operators approve retries, an owner decides who else may approve. */
const APPROVING: readonly Right[] = ['approvals:decide', 'runs:control', 'people:delegate'];
const approving = (role: Role): Right[] => APPROVING.filter((right) => may(role, right));

/** How a change extends who may approve what; empty if it extends nothing. */
export function widenings(before: Person | undefined, after: Person): string[] {
  const added = newDelegates(before, after).map((id) => `${id} may decide on behalf of ${after.id}`);
  const rights = approving(after.role);
  if (rights.length === 0) return added;
  const former = before ? approving(before.role) : [];
  if (!before || former.length === 0) return [`${after.id} may approve, as ${after.role}`, ...added];
  const groups = missingIn(before.groups, after.groups);
  const identities = [
    ...missingIn(before.identities, after.identities),
    ...missingIn(after.identities, before.identities),
  ];
  return [
    ...(missingIn(former, rights).length > 0 ? [`${after.id} becomes ${after.role}`] : []),
    ...(RISKS.indexOf(after.tier) > RISKS.indexOf(before.tier)
      ? [`${after.id} may approve up to ${after.tier} risk`]
      : []),
    ...groups.map((group) => `${after.id} joins the group ${group}`),
    // A removed identity matters too: it no longer shows that this person is a maker.
    ...identities.map((identity) => `the identity ${identity} of ${after.id} changes`),
    ...added,
  ];
}

/** The people whom the change allows to decide on this person's behalf. */
const newDelegates = (before: Person | undefined, after: Person): string[] =>
  missingIn(delegateIds(before), delegateIds(after));

const delegateIds = (person: Person | undefined): string[] => (person?.delegates ?? []).map(({ person: id }) => id);

const missingIn = (there: readonly string[], wanted: readonly string[]): string[] =>
  wanted.filter((each) => !there.includes(each));

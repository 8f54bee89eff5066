import { RISKS } from '../connectors/connector.ts';
import type { Person } from './people.ts';
import { may, type Right, type Role } from './rights.ts';

/** Rights that let somebody approve, or say who may: operators approve retries, an owner says who else may approve. */
const APPROVING: readonly Right[] = ['approvals:decide', 'runs:control', 'people:delegate'];
const approving = (role: Role): Right[] => APPROVING.filter((right) => may(role, right));

/** In which ways a change widens who may approve what; none if it only narrows it, or has nothing to do with it. */
export function widenings(before: Person | undefined, after: Person): string[] {
  const added = newDelegates(before, after).map((id) => `${id} may take the place of ${after.id}`);
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
    // One that is taken away matters too: it no longer shows that this person made a write.
    ...identities.map((identity) => `the identity ${identity} of ${after.id} changes`),
    ...added,
  ];
}

/** Those whom the change newly lets take this person's place. */
export const newDelegates = (before: Person | undefined, after: Person): string[] =>
  missingIn(delegateIds(before), delegateIds(after));

const delegateIds = (person: Person | undefined): string[] => (person?.delegates ?? []).map(({ person: id }) => id);

const missingIn = (there: readonly string[], wanted: readonly string[]): string[] =>
  wanted.filter((each) => !there.includes(each));

import { RISKS } from '../connectors/connector.ts';
import { may, type Person, type Role } from './people.ts';

/** Who may decide, from less to more: an owner also says who else may. */
const DECIDING: readonly Role[] = ['approver', 'admin', 'owner'];

/** In which ways a change widens who may approve what; none if it only narrows it, or has nothing to do with it. */
export function widenings(before: Person | undefined, after: Person): string[] {
  const added = newDelegates(before, after).map((id) => `${id} may take the place of ${after.id}`);
  if (!may(after.role, 'decide')) return added;
  if (!before || !may(before.role, 'decide')) return [`${after.id} may approve, as ${after.role}`, ...added];
  const groups = missingIn(before.groups, after.groups);
  const identities = [
    ...missingIn(before.identities, after.identities),
    ...missingIn(after.identities, before.identities),
  ];
  return [
    ...(DECIDING.indexOf(after.role) > DECIDING.indexOf(before.role) ? [`${after.id} becomes ${after.role}`] : []),
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

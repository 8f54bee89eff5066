import type { ApprovalRequirement } from '../policy/policy.ts';
import { type Person, tierRank } from './people.ts';

/** Whose place someone may take, however the absences chain: nobody's twice, so that a circle of delegates ends. */
const DELEGATIONS_MAX = 10;

export type Eligibility =
  | { may: true; onBehalfOf?: string }
  /** A sentence for the person who tried. */
  | { may: false; why: string };

/** Whether a person may decide on an approval, in their own right or in the place of someone who is away. */
export function mayDecide(
  person: Person,
  people: readonly Person[],
  requirement: ApprovalRequirement,
  makers: readonly string[],
  now: string,
): Eligibility {
  const own = fits(person, requirement);
  if (own === true) return { may: true };
  // A maker's place may not be taken either: their delegate would only be another hand of theirs.
  const absent = placesTakenBy(person, people, now).find(
    (other) => !makers.includes(other.id) && fits(other, requirement) === true,
  );
  return absent ? { may: true, onBehalfOf: absent.id } : { may: false, why: own };
}

function fits({ role, tier, groups }: Person, requirement: ApprovalRequirement): true | string {
  const anyTier = role === 'owner' || role === 'admin';
  if (!anyTier && role !== 'approver') return `a ${role} may not decide on approvals; ask an approver`;
  if (!anyTier && tierRank(tier) < tierRank(requirement.tier)) {
    return `this needs an approver for ${requirement.tier} risk; you are one up to ${tier}`;
  }
  if (requirement.groups.length > 0 && !requirement.groups.some((group) => groups.includes(group))) {
    return `this needs someone of ${requirement.groups.join(' or ')}`;
  }
  return true;
}

/** Everyone who is away now and whose delegate, or delegate's delegate, is this person. */
export function placesTakenBy(person: Person, people: readonly Person[], now: string): Person[] {
  return people.filter((other) => other.id !== person.id && standIn(other, people, now) === person.id);
}

/** Who acts for someone now: themselves, or at the end of the chain of delegates who are away too. */
export function standIn(person: Person, people: readonly Person[], now: string): string | undefined {
  let at: Person | undefined = person;
  for (let hops = 0; at && hops < DELEGATIONS_MAX; hops += 1) {
    const { away }: Person = at;
    if (!away || away.until <= now) return at.id;
    at = people.find(({ id }) => id === away.delegate);
  }
  return undefined;
}

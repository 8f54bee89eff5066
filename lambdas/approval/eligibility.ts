import type { ApprovalRequirement } from '../policy/policy.ts';
import { atLeast, groupsInWords } from '../policy/requirement.ts';
import { may, type Person } from './people.ts';

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
  const absent = people.find(
    (other) =>
      other.id !== person.id && standIn(other, people, now, makers) === person.id && fits(other, requirement) === true,
  );
  return absent ? { may: true, onBehalfOf: absent.id } : { may: false, why: own };
}

function fits({ role, tier, groups }: Person, requirement: ApprovalRequirement): true | string {
  const anyTier = role === 'owner' || role === 'admin';
  if (requirement.operators && may(role, 'control')) return true;
  if (!may(role, 'decide')) return `a ${role} may not decide on approvals; ask an approver`;
  if (!anyTier && !atLeast(tier, requirement.tier)) {
    return `this needs an approver for ${requirement.tier} risk; you are one up to ${tier}`;
  }
  if (!requirement.groups.every((set) => set.some((group) => groups.includes(group)))) {
    return `this needs someone of ${groupsInWords(requirement.groups)}`;
  }
  return true;
}

/**
 * Who acts for someone now: themselves, or at the end of the chain of delegates who are away too. Makers hand nothing on,
 * neither their own place nor one that was left to them: whoever they name would only be another hand of theirs.
 */
export function standIn(
  person: Person,
  people: readonly Person[],
  now: string,
  makers: readonly string[] = [],
): string | undefined {
  let at: Person | undefined = person;
  for (let hops = 0; at && hops < DELEGATIONS_MAX; hops += 1) {
    const { id, away }: Person = at;
    if (makers.includes(id)) return undefined;
    if (!away || away.until <= now) return id;
    at = people.find(({ id }) => id === away.delegate);
  }
  return undefined;
}

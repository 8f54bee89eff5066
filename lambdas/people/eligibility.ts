import { atLeast } from '../policy/approval-requirement.ts';
import type { ApprovalRequirement } from '../policy/policy.ts';
import { groupsText } from '../run/events/requirement-text.ts';
import type { Person } from './people.ts';
import { whyNotCounted } from './provenance.ts';
import { may } from './rights.ts';

/** Ends the search when people who are away name each other as delegates. */
const DELEGATIONS_MAX = 10;

export type Eligibility =
  | { may: true; onBehalfOf?: string }
  /** Shown to the person who tried to decide. */
  | { may: false; why: string };

/** Whether a person may decide on an approval, by their own rights or on behalf of someone who is away. */
export function mayDecide(
  person: Person,
  people: readonly Person[],
  requirement: ApprovalRequirement,
  makers: readonly string[],
  now: string,
): Eligibility {
  const own = fits(person, requirement);
  const uncounted = whyNotCounted(person, makers, now);
  if (own === true) return uncounted === undefined ? { may: true } : { may: false, why: uncounted };
  const absent = people.filter(
    (other) =>
      other.id !== person.id && standIn(other, people, now, makers) === person.id && fits(other, requirement) === true,
  );
  const refusals = absent.map((other) => uncounted ?? whyNotInPlaceOf(other, person, makers, now));
  const represented = absent.find((_other, index) => refusals[index] === undefined);
  return represented ? { may: true, onBehalfOf: represented.id } : { may: false, why: refusals[0] ?? own };
}

/** A delegate without the right to decide needs a permission from an owner who is not a maker of the write. */
function whyNotInPlaceOf(absent: Person, { id }: Person, makers: readonly string[], now: string): string | undefined {
  const permission = absent.delegates?.find(({ person }) => person === id);
  if (!permission) {
    return `${absent.id} named you to decide in their place, but you may not approve this yourself; an owner can allow it: countersign people delegates ${absent.id} --add ${id}`;
  }
  return whyNotCounted(absent, makers, now) ?? whyNotCounted({ id, rights: permission.rights }, makers, now);
}

/** True if a delegate may approve everything that the person may: then no permission is needed. */
export function coversRightsOf(delegate: Person, { role, tier, groups }: Person): boolean {
  if (may(role, 'runs:control') && !may(delegate.role, 'runs:control')) return false;
  if (!may(role, 'approvals:decide')) return true;
  const tierNeeded = isAnyTier(role) ? 'high' : tier;
  return fits(delegate, { tier: tierNeeded, quorum: 1, groups: groups.map((group) => [group]) }) === true;
}

const isAnyTier = (role: Person['role']): boolean => role === 'owner' || role === 'admin';

function fits({ role, tier, groups }: Person, requirement: ApprovalRequirement): true | string {
  if (requirement.operators && may(role, 'runs:control')) return true;
  if (!may(role, 'approvals:decide')) return `the role ${role} may not decide on approvals; ask an approver`;
  if (!isAnyTier(role) && !atLeast(tier, requirement.tier)) {
    return `this needs an approver for ${requirement.tier} risk; you are one up to ${tier}`;
  }
  if (!requirement.groups.every((set) => set.some((group) => groups.includes(group)))) {
    return `this needs someone of ${groupsText(requirement.groups)}`;
  }
  return true;
}

/**
 * Who acts for a person now: the person, or the delegate at the end of a chain of people who are away. A maker cannot
 * delegate, neither their own vote nor one that was delegated to them: otherwise a maker could choose who approves.
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

import { groupsInWords } from '../../../lambdas/policy/approval-requirement.ts';

interface Requirement {
  quorum: number;
  tier: string;
  groups: readonly (readonly string[])[];
  operators?: boolean;
}

/** Who is needed: `2 people for high risk, from dba or sre`. */
export function requirementInWords({ quorum, tier, groups, operators }: Requirement): string {
  if (operators) return `an operator, or an approver for ${tier} risk`;
  const from = groups.length > 0 ? `, from ${groupsInWords(groups)}` : '';
  return `${quorum === 1 ? '1 person' : `${quorum} people`} for ${tier} risk${from}`;
}

interface RequirementFields {
  quorum: number;
  tier: string;
  groups: readonly (readonly string[])[];
  operators?: boolean;
}

/** `2 people for high risk, from dba or sre`. */
export function requirementText({ quorum, tier, groups, operators }: RequirementFields): string {
  if (operators) return `an operator, or an approver for ${tier} risk`;
  const from = groups.length > 0 ? `, from ${groupsText(groups)}` : '';
  return `${quorum === 1 ? '1 person' : `${quorum} people`} for ${tier} risk${from}`;
}

/** `dba or sre`; `(dba or sre) and security`. */
export function groupsText(groups: readonly (readonly string[])[]): string {
  const [only, ...others] = groups;
  if (only && others.length === 0) return only.join(' or ');
  return groups.map((set) => (set.length > 1 ? `(${set.join(' or ')})` : set.join())).join(' and ');
}

import { Person } from '../../lambdas/people/people.ts';

/** The people of acme: two approvers, one of them for any tier, and some who may not approve. */
export const ANA = Person.parse({
  id: 'ana',
  name: 'Ana',
  role: 'approver',
  tier: 'high',
  identities: ['slack:T1/U1'],
});
export const BEN = Person.parse({ id: 'ben', name: 'Ben', role: 'approver', tier: 'medium', groups: ['network'] });
export const OLIVIA = Person.parse({ id: 'olivia', name: 'Olivia', role: 'owner', identities: ['github:olivia-gh'] });
export const CHLOE = Person.parse({ id: 'chloe', name: 'Chloe', role: 'member' });
/** A person with these delegates, whom an owner has permitted. The operator had added that owner. */
export const allowing = (person: Person, ...delegates: string[]): Person => ({
  ...person,
  delegates: delegates.map((id) => ({ person: id, rights: GIVEN_BY_OLIVIA })),
});
export const GIVEN_BY_OLIVIA = {
  changedBy: 'olivia',
  changedAt: '2026-01-01T00:00:00.000Z',
  countsFrom: '2026-01-01T00:00:00.000Z',
  dependsOn: ['olivia'],
};
export const PEOPLE = [ANA, BEN, OLIVIA, CHLOE];

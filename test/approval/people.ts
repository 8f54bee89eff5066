import { Person } from '../../lambdas/approval/people.ts';

/** Who works at acme: two approvers, one of them for everything, and some who may not approve. */
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
export const PEOPLE = [ANA, BEN, OLIVIA, CHLOE];

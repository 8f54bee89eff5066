import { describe, expect, it } from 'vitest';
import { Person, personBehind } from '../../lambdas/people/people.ts';
import { effectiveRole, ROLES } from '../../lambdas/people/rights.ts';

const ben = Person.parse({
  id: 'ben',
  name: 'Ben',
  role: 'approver',
  identities: ['github:Ben-Okafor', 'servicenow:Ben.O', 'slack:T1/Uben'],
});

describe('an identity', () => {
  it.each([
    ['github:ben-okafor', 'ben'],
    ['github:BEN-OKAFOR', 'ben'],
    ['servicenow:ben.o', 'ben'],
    ['slack:T1/Uben', 'ben'],
    ['ben', 'ben'],
    // Slack ids are case-sensitive.
    ['slack:T1/UBEN', 'slack:T1/UBEN'],
    ['github:Somebody', 'github:somebody'],
  ])('%s is %s', (identity, person) => {
    expect(personBehind([ben], identity)).toBe(person);
  });

  it('is recognized in the spelling that an operator has typed', () => {
    const typed = { ...ben, identities: [' github:Ben-Okafor ', 'servicenow: Ben.O'] };
    expect(personBehind([typed], 'github:ben-okafor')).toBe('ben');
    expect(personBehind([typed], 'servicenow:BEN.O')).toBe('ben');
  });

  it('names its system, so that it cannot be mistaken for the id of a person', () => {
    expect(Person.safeParse({ ...ben, identities: ['ana'] }).success).toBe(false);
  });
});

describe('a key', () => {
  it.each([
    ['owner', 'approver', 'approver'],
    ['admin', 'member', 'member'],
    ['auditor', 'admin', 'auditor'],
    ['approver', 'owner', 'approver'],
    ['operator', 'admin', 'operator'],
    // Neither may do anything the other may.
    ['operator', 'approver', 'member'],
    ['auditor', 'approver', 'member'],
    ['approver', 'auditor', 'member'],
  ] as const)('for the role %s, used by a person who is %s, makes them %s', (key, role, effective) => {
    expect(effectiveRole(key, { role })).toBe(effective);
  });

  it.each(ROLES)('of a machine has its own role: %s', (role) => {
    expect(effectiveRole(role, undefined)).toBe(role);
    expect(effectiveRole(role, { role })).toBe(role);
  });
});

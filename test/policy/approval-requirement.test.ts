import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RISKS } from '../../lambdas/connectors/connector.ts';
import { mayDecide } from '../../lambdas/people/eligibility.ts';
import type { Person } from '../../lambdas/people/people.ts';
import { GroupSets, groupsInOrder, stricter } from '../../lambdas/policy/approval-requirement.ts';
import type { ApprovalRequirement } from '../../lambdas/policy/policy.ts';
import { groupsText } from '../../lambdas/run/events/requirement-text.ts';

const SEED = 20_260_102;
const group = fc.constantFrom('dba', 'net', 'sre');
const requirement: fc.Arbitrary<ApprovalRequirement> = fc.record({
  tier: fc.constantFrom(...RISKS),
  quorum: fc.integer({ min: 1, max: 3 }),
  groups: fc.array(fc.uniqueArray(group, { minLength: 1 }), { maxLength: 3 }),
});
const person: fc.Arbitrary<Person> = fc.record({
  id: fc.constant('ana'),
  name: fc.constant('Ana'),
  role: fc.constantFrom('owner' as const, 'approver' as const, 'member' as const),
  tier: fc.constantFrom(...RISKS),
  groups: fc.uniqueArray(group),
  identities: fc.constant([]),
});
const may = (who: Person, needs: ApprovalRequirement) => mayDecide(who, [who], needs, [], '2026-01-02').may;

describe('the combination of two requirements', () => {
  it('is met exactly if both are met', () => {
    fc.assert(
      fc.property(person, requirement, requirement, (who, a, b) => {
        expect(may(who, stricter(a, b))).toBe(may(who, a) && may(who, b));
      }),
      { seed: SEED },
    );
  });

  it('is commutative and idempotent', () => {
    fc.assert(
      fc.property(requirement, requirement, (a, b) => {
        expect(stricter(a, b)).toEqual(stricter(b, a));
        expect(stricter(stricter(a, b), b)).toEqual(stricter(a, b));
      }),
      { seed: SEED },
    );
  });
});

describe('groups', () => {
  it.each([
    [[], []],
    [['sre', 'dba'], [['sre', 'dba']]],
    [
      [['sre', 'dba'], ['net']],
      [['sre', 'dba'], ['net']],
    ],
  ])('%j is parsed as %j', (written, sets) => {
    expect(GroupSets.parse(written)).toEqual(sets);
  });

  it.each([[[[]]], [['']], [['sre', ['dba']]], ['sre']])('%j is invalid', (written) => {
    expect(GroupSets.safeParse(written).success).toBe(false);
  });

  it('have a text', () => {
    expect(groupsText([['dba', 'sre']])).toBe('dba or sre');
    expect(groupsText([['dba', 'sre'], ['net']])).toBe('(dba or sre) and net');
  });

  it('have a fixed order without duplicates', () => {
    expect(groupsInOrder([['b', 'a'], ['c'], ['a', 'b', 'a']])).toEqual([['a', 'b'], ['c']]);
  });
});

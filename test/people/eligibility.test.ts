import { describe, expect, it } from 'vitest';
import { mayDecide, standIn } from '../../lambdas/people/eligibility.ts';
import type { Person } from '../../lambdas/people/people.ts';
import type { ApprovalRequirement } from '../../lambdas/policy/policy.ts';
import { ANA, allowing, BEN, CHLOE, GIVEN_BY_OLIVIA, OLIVIA, PEOPLE } from '../approval/people.ts';

const NOW = '2026-01-02T12:00:00.000Z';
const LATER = '2026-01-09T12:00:00.000Z';
const needs = (differing: Partial<ApprovalRequirement> = {}): ApprovalRequirement => ({
  tier: 'medium',
  quorum: 1,
  groups: [],
  ...differing,
});
const leaving = (person: Person, delegate: string, until = LATER): Person => ({ ...person, away: { until, delegate } });
/** Away, and an owner allowed Chloe, who may not approve herself, to take their place. */
const away = (person: Person, delegate: string, until = LATER): Person =>
  allowing(leaving(person, delegate, until), 'chloe');
const may = (person: Person, requirement = needs(), people = PEOPLE, makers: string[] = []) =>
  mayDecide(person, people, requirement, makers, NOW);

describe('who may decide', () => {
  it('is an approver with a sufficient tier, an admin or an owner for any tier, and nobody else', () => {
    expect(may(BEN)).toEqual({ may: true });
    expect(may(BEN, needs({ tier: 'high' }))).toMatchObject({ may: false, why: expect.stringMatching(/high risk/) });
    expect(may(ANA, needs({ tier: 'high' }))).toEqual({ may: true });
    expect(may(OLIVIA, needs({ tier: 'high' }))).toEqual({ may: true });
    expect(may(CHLOE, needs({ tier: 'low' }))).toMatchObject({ may: false, why: expect.stringMatching(/member/) });
  });

  it('is in the group that policy names, even an owner', () => {
    const ofNetwork = needs({ groups: [['network', 'sre']] });
    expect(may(BEN, ofNetwork)).toEqual({ may: true });
    expect(may(OLIVIA, ofNetwork)).toMatchObject({ may: false, why: expect.stringMatching(/network or sre/) });
    expect(may(BEN, needs({ groups: [['network', 'sre'], ['security']] }))).toMatchObject({ may: false });
  });

  it('decides on behalf of someone who is away, and the vote says so', () => {
    const people = [away(ANA, 'chloe'), BEN, OLIVIA, CHLOE];
    expect(may(CHLOE, needs({ tier: 'high' }), people)).toEqual({ may: true, onBehalfOf: 'ana' });
  });

  it('does not decide on behalf of someone who alone named them, without the tier or group', () => {
    const ofNetwork = needs({ groups: [['network']] });
    expect(may(CHLOE, needs(), [leaving(ANA, 'chloe'), CHLOE])).toMatchObject({
      may: false,
      why: expect.stringMatching(/ana named you.*countersign people delegates ana --add chloe/),
    });
    const people = [leaving(BEN, 'ana'), leaving(ANA, 'ben'), CHLOE];
    expect(may(BEN, needs({ tier: 'high' }), [leaving(ANA, 'ben'), BEN])).toMatchObject({ may: false });
    expect(may(ANA, ofNetwork, [leaving(BEN, 'ana'), ANA])).toMatchObject({ may: false });
    // With their own rights they may still decide what they could before.
    expect(may(BEN, ofNetwork, people)).toEqual({ may: true });
  });

  it('does not decide by a permission of a maker, nor before the cool-down is over', () => {
    const people = [away(ANA, 'chloe'), CHLOE];
    expect(may(CHLOE, needs(), people, ['olivia'])).toMatchObject({ may: false, why: expect.stringMatching(/olivia/) });
    const soon = { ...GIVEN_BY_OLIVIA, changedAt: '2026-01-02T11:00:00.000Z', countsFrom: LATER };
    const fresh = { ...leaving(ANA, 'chloe'), delegates: [{ person: 'chloe', rights: soon }] };
    expect(may(CHLOE, needs(), [fresh, CHLOE])).toMatchObject({
      may: false,
      why: expect.stringMatching(/counts from/),
    });
  });

  it('decides on nobody’s behalf before they leave or after they are back', () => {
    const people = [away(ANA, 'chloe', NOW), BEN, CHLOE];
    expect(may(CHLOE, needs(), people)).toMatchObject({ may: false });
  });

  it('never decides on behalf of a maker: a delegate is no second person', () => {
    const people = [away(ANA, 'chloe'), CHLOE];
    expect(may(CHLOE, needs(), people, ['ana'])).toMatchObject({ may: false });
  });

  it('does not decide by a delegation that passes through a maker', () => {
    const people = [away(ANA, 'olivia'), away(OLIVIA, 'chloe'), CHLOE];
    expect(may(CHLOE, needs(), people)).toEqual({ may: true, onBehalfOf: 'ana' });
    expect(may(CHLOE, needs(), people, ['olivia'])).toMatchObject({ may: false });
  });

  it('is the end of a chain of delegates, and nobody in a circle of them', () => {
    const chain = [away(ANA, 'ben'), away(BEN, 'chloe'), CHLOE];
    expect(standIn(chain[0] as Person, chain, NOW)).toBe('chloe');
    expect(may(CHLOE, needs({ tier: 'high' }), chain)).toEqual({ may: true, onBehalfOf: 'ana' });
    const circle = [away(ANA, 'ben'), away(BEN, 'ana')];
    expect(standIn(circle[0] as Person, circle, NOW)).toBeUndefined();
  });
});

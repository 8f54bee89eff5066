import { describe, expect, it } from 'vitest';
import type { Person } from '../../lambdas/people/people.ts';
import { countedVotes, stillMissing } from '../../lambdas/people/votes.ts';
import type { Vote } from '../../lambdas/run/approval.ts';
import { ANA, allowing, BEN, CHLOE, OLIVIA, PEOPLE } from '../approval/people.ts';

const VOTED_AT = '2026-01-02T12:00:00.000Z';
const LATER = '2026-01-09T12:00:00.000Z';
const yes = (person: string, onBehalfOf?: string): Vote => ({
  person,
  via: 'slack',
  decision: 'approve',
  at: VOTED_AT,
  ...(onBehalfOf !== undefined && { onBehalfOf }),
});
const approval = (votes: Vote[], makers: string[] = [], groups: string[][] = []) => ({
  votes,
  makers,
  requirement: { tier: 'medium' as const, quorum: 2, groups },
});
const who = (votes: Vote[]) => votes.map(({ person }) => person);
/** All people, one of them changed meanwhile. */
const withNow = (changed: Person) => [...PEOPLE.filter(({ id }) => id !== changed.id), changed];
const anaAway = (delegate: string, until = LATER) => withNow({ ...allowing(ANA, 'chloe'), away: { until, delegate } });

describe('an approving vote counts', () => {
  it('once for each person who may decide; a rejection does not count', () => {
    const votes = [yes('ana'), yes('ben'), { ...yes('olivia'), decision: 'reject' as const }];
    expect(who(countedVotes(approval(votes), PEOPLE))).toEqual(['ana', 'ben']);
    expect(stillMissing(approval(votes), PEOPLE)).toBe(0);
  });

  it.each([
    ['is a maker by now', withNow({ ...BEN, identities: ['github:ben-gh'] })],
    ['may not decide any more', withNow({ ...BEN, role: 'member' })],
    ['may decide less by now', withNow({ ...BEN, tier: 'low' })],
    ['has left the group that was asked', withNow({ ...BEN, groups: [] })],
    ['is not known any more', PEOPLE.filter(({ id }) => id !== 'ben')],
  ])('no longer if its voter %s', (_what, people) => {
    const voted = approval([yes('ben')], ['github:ben-gh'], [['network']]);
    expect(who(countedVotes(voted, PEOPLE))).toEqual(['ben']);
    expect(countedVotes(voted, people)).toEqual([]);
    expect(stillMissing(voted, people)).toBe(2);
  });

  it('on behalf of someone who was away then, also after they are back', () => {
    const voted = approval([yes('chloe', 'ana')]);
    expect(who(countedVotes(voted, anaAway('chloe', '2026-01-02T12:00:01.000Z')))).toEqual(['chloe']);
  });

  it.each([
    ['took somebody else', anaAway('ben')],
    ['called the absence off', PEOPLE],
    ['may not decide either by now', withNow({ ...ANA, role: 'member', away: { until: LATER, delegate: 'chloe' } })],
  ])('no longer on behalf of a person who %s', (_what, people) => {
    expect(countedVotes(approval([yes('chloe', 'ana')]), people)).toEqual([]);
  });

  it('once for a person who is away and their delegate', () => {
    const voted = approval([yes('chloe', 'ana'), yes('ana')]);
    expect(who(countedVotes(voted, anaAway('chloe')))).toEqual(['chloe']);
    expect(stillMissing(voted, anaAway('chloe'))).toBe(1);
  });

  it('never on behalf of a person whose vote a maker delegated', () => {
    const people = [
      { ...allowing(ANA, 'chloe'), away: { until: LATER, delegate: 'olivia' } },
      { ...OLIVIA, away: { until: LATER, delegate: 'chloe' } },
      CHLOE,
    ];
    const votes = [yes('chloe', 'ana')];
    expect(who(countedVotes(approval(votes), people))).toEqual(['chloe']);
    expect(countedVotes(approval(votes, ['github:olivia-gh']), people)).toEqual([]);
  });
});

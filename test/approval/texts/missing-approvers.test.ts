import { describe, expect, it } from 'vitest';
import { approverWarnings } from '../../../lambdas/approval/texts/approver-warnings.ts';
import { missingApprovers, sentenceText } from '../../../lambdas/approval/texts/missing-approvers.ts';
import type { Person } from '../../../lambdas/people/people.ts';
import type { ApprovalRequirement } from '../../../lambdas/policy/policy.ts';
import { parseWorkflow } from '../../../lambdas/workflow/parse-workflow.ts';
import { ANA, BEN, CHLOE, GIVEN_BY_OLIVIA, OLIVIA, PEOPLE } from '../people.ts';

const AT = '2026-01-02T12:00:00.000Z';
const ONE: ApprovalRequirement = { tier: 'medium', quorum: 1, groups: [] };
const text = (requirement: Partial<ApprovalRequirement>, makers: string[] = [], people: readonly Person[] = PEOPLE) => {
  const missing = missingApprovers({ requirement: { ...ONE, ...requirement }, makers }, people, AT);
  return missing && sentenceText(missing);
};
const away = (person: Person, delegate: string): Person => ({
  ...person,
  away: { until: '2026-01-09T00:00:00.000Z', delegate },
});

describe('a warning that too few people can approve', () => {
  it('is not given while enough people can', () => {
    expect(text({})).toBeUndefined();
    expect(text({ quorum: 3 })).toBeUndefined();
    expect(text({ quorum: 2, tier: 'high' })).toBeUndefined();
    expect(text({ groups: [['network']] })).toBeUndefined();
  });

  it('names a group without an approver of the tier', () => {
    expect(text({ tier: 'high', groups: [['network']] })).toBe(
      'nobody can approve this: group network has no approver of tier high; ' +
        'add an approver of tier high in that group with countersign people put, or cancel the run',
    );
    expect(text({ groups: [['dba', 'sre'], ['network']] })).toContain(
      'groups dba or sre and network have no approver of tier medium',
    );
  });

  it('says how many are missing', () => {
    expect(text({ quorum: 4 })).toMatch(
      /^only 3 of the 4 required people can approve this: there are only 3 of tier medium;/,
    );
  });

  it('names makers, also by an identity, and people who are away', () => {
    const makers = ['github:olivia-gh', 'ana'];
    expect(text({ quorum: 2 }, makers)).toMatch(/^only 1 of the 2 .*: Ana, Olivia had a hand in this write;/);
    expect(text({ quorum: 2 }, ['ana'], [ANA, away(BEN, 'chloe'), CHLOE])).toMatch(
      /^nobody can approve this: Ana had a hand in this write; Ben is away until 2026-01-09/,
    );
  });

  it('counts a delegate who may act for a person who is away, once', () => {
    const delegating = { ...away(ANA, 'chloe'), delegates: [{ person: 'chloe', rights: GIVEN_BY_OLIVIA }] };
    expect(text({ tier: 'high' }, [], [delegating, CHLOE])).toBeUndefined();
    expect(text({ tier: 'high', quorum: 2 }, [], [delegating, CHLOE])).toMatch(/^only 1 of the 2/);
  });

  it('names a person whose right does not count yet', () => {
    const rights = {
      ...GIVEN_BY_OLIVIA,
      changedAt: '2026-01-02T00:00:00.000Z',
      countsFrom: '2026-01-03T00:00:00.000Z',
    };
    expect(text({}, [], [{ ...ANA, rights }])).toContain(
      'Ana has a right to approve that does not count for this write',
    );
  });
});

describe('publishing a workflow warns', () => {
  const warnings = (steps: string, people: readonly Person[] = PEOPLE) =>
    approverWarnings(parseWorkflow(`name: w\nsteps:\n${steps}`, 'w.yaml'), 'olivia', people, AT);
  const label = '{ owner: o, repo: r, number: 1, labels: [a] }';

  it('about approval steps, approvers and writes that always need two people', () => {
    expect(warnings('  - { id: ask, tool: approval, with: { groups: [dba] } }')).toEqual([
      expect.stringMatching(/^step ask: nobody can approve this: group dba has no approver of tier medium;/),
    ]);
    expect(warnings(`  - { id: add, tool: github.labels.add, approvers: { groups: [dba] }, with: ${label} }`)).toEqual([
      expect.stringMatching(/^step add: nobody/),
    ]);
    expect(warnings(`  - { id: add, tool: github.labels.add, blastRadius: high, with: ${label} }`)).toEqual([
      expect.stringMatching(/^step add: only 1 of the 2 .*Olivia had a hand/),
    ]);
  });

  it('about nothing that enough people can approve, or that only the run will know', () => {
    expect(warnings('  - { id: ask, tool: approval, with: { groups: [network] } }')).toEqual([]);
    expect(warnings('  - { id: ask, tool: approval, with: { groups: ["{% trigger.team %}"] } }')).toEqual([]);
    expect(warnings(`  - { id: add, tool: github.labels.add, with: ${label} }`, [])).toEqual([]);
  });
});

it('an owner alone can approve nothing that they wrote', () => {
  expect(text({}, ['olivia'], [OLIVIA])).toMatch(/^nobody can approve this: Olivia had a hand in this write;/);
});

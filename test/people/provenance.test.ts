import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Person } from '../../lambdas/people/people.ts';
import { provenanceOf, whyNotCounted, withConfirmation } from '../../lambdas/people/provenance.ts';
import { widenings } from '../../lambdas/people/widening.ts';
import { ANA, BEN, CHLOE, OLIVIA } from '../approval/people.ts';
import { ASSIGN, GovernedWorkshop } from '../worker/governance/governed-workshop.ts';

const AT = '2026-01-02T12:00:00.000Z';
const DAY_MS = 24 * 60 * 60 * 1000;
const given = (people: readonly Person[], changedBy: string, confirmedBy?: string, coolDownMs = 0) =>
  provenanceOf(people, { changedBy, ...(confirmedBy !== undefined && { confirmedBy }), at: AT, coolDownMs });

describe('a right to approve', () => {
  it('does not count for the writes of the person who gave it, even through other people', () => {
    const puppet: Person = { ...BEN, id: 'puppet', role: 'admin', rights: given([OLIVIA], 'olivia') };
    const second: Person = { ...BEN, id: 'second', rights: given([OLIVIA, puppet], 'puppet') };
    expect(whyNotCounted(puppet, ['olivia'], AT)).toMatch(/olivia had a hand.*countersign people confirm puppet/);
    expect(whyNotCounted(second, ['olivia'], AT)).toMatch(/olivia/);
    expect(whyNotCounted(second, ['puppet'], AT)).toMatch(/puppet/);
    expect(whyNotCounted(second, ['ana'], AT)).toBeUndefined();
    // A person cannot make their own right independent, neither by confirming nor by changing it.
    expect(withConfirmation([OLIVIA, puppet], puppet.rights as never, 'puppet').dependsOn).toContain('olivia');
    expect(given([OLIVIA, puppet], 'puppet').dependsOn).toEqual(['olivia', 'puppet']);
    expect(given([OLIVIA, puppet], 'olivia', 'puppet').dependsOn).toEqual(['olivia']);
  });

  it('counts for everybody once two people who do not depend on each other have confirmed it', () => {
    expect(given([OLIVIA, ANA], 'olivia', 'ana').dependsOn).toEqual([]);
    const one = given([OLIVIA, ANA], 'olivia');
    expect(withConfirmation([OLIVIA, ANA], one, 'ana')).toMatchObject({ confirmedBy: 'ana', dependsOn: [] });
  });

  it('counts after the cool-down, for votes given from then on and for those from before the change', () => {
    const ben = { ...BEN, rights: given([OLIVIA], 'olivia', undefined, DAY_MS) };
    expect(whyNotCounted(ben, [], AT)).toMatch(/counts from 2026-01-03T12:00:00.000Z/);
    expect(whyNotCounted(ben, [], '2026-01-03T11:59:59.999Z')).toBeDefined();
    expect(whyNotCounted(ben, [], '2026-01-03T12:00:00.000Z')).toBeUndefined();
    expect(whyNotCounted(ben, [], '2026-01-02T11:59:59.999Z')).toBeUndefined();
  });

  it('of a person defined by the operator of the stage always counts', () => {
    expect(whyNotCounted(ANA, ['olivia'], AT)).toBeUndefined();
  });
});

describe('a change extends who may approve', () => {
  const change = (before: Person | undefined, differing: Partial<Person>) =>
    widenings(before, Person.parse({ ...(before ?? BEN), ...differing }));

  it.each<[string, Person | undefined, Partial<Person>]>([
    ['a new approver', undefined, {}],
    ['a member who may approve now', CHLOE, { role: 'approver' }],
    ['an approver who becomes an admin', BEN, { role: 'admin' }],
    ['a member who may approve retries now, as operator', CHLOE, { role: 'operator' }],
    ['an approver who becomes an operator', BEN, { role: 'operator' }],
    ['an admin who becomes an owner', { ...BEN, role: 'admin' }, { role: 'owner' }],
    ['a higher tier', BEN, { tier: 'high' }],
    ['another group', BEN, { groups: ['network', 'database'] }],
    ['another identity', BEN, { identities: ['github:ben'] }],
    ['an identity that is taken away: what it writes would not be theirs any more', ANA, { identities: [] }],
  ])('by %s', (_what, before, differing) => {
    expect(change(before, differing)).toHaveLength(1);
  });

  it.each<[string, Person | undefined, Partial<Person>]>([
    ['a new member', undefined, { role: 'member' }],
    ['a demotion', OLIVIA, { role: 'approver' }],
    ['a lower tier', ANA, { tier: 'low' }],
    ['a group that was left', BEN, { groups: [] }],
    ['another name', BEN, { name: 'Benjamin' }],
    ['an absence', BEN, { away: { until: AT, delegate: 'ana' } }],
    ['an identity of somebody who may not approve', CHLOE, { identities: ['github:chloe'] }],
  ])('not by %s', (_what, before, differing) => {
    expect(change(before, differing)).toEqual([]);
  });
});

/** Olivia, known to GitHub by this name, opens the issue that starts the run. */
const BY_OLIVIA = { trigger: { fields: { title: 't', number: 7, actor: 'olivia-gh' } } };

describe('an owner who creates somebody to approve their own write', () => {
  let shop: GovernedWorkshop;
  const puppet: Person = { ...BEN, id: 'puppet', tier: 'high', rights: given([OLIVIA], 'olivia') };
  const independent: Person = { ...puppet, rights: given([OLIVIA, ANA], 'olivia', 'ana') };
  const know = (person: Person) => shop.definitions.savePerson('acme', person);
  beforeEach(async () => {
    shop = await new GovernedWorkshop().open();
    vi.stubGlobal('fetch', shop.outside.fetch);
  });
  afterEach(() => vi.unstubAllGlobals());

  it('is refused with what to do, and nothing is written until an independent person confirms', async () => {
    await know(puppet);
    const { message, approval } = await shop.upToGate(ASSIGN(), BY_OLIVIA);
    expect(approval.makers).toEqual(['olivia']);
    await expect(shop.say(approval, 'puppet')).rejects.toMatchObject({
      code: 'APPROVAL_FORBIDDEN',
      message: expect.stringMatching(/countersign people confirm puppet/),
    });
    expect(shop.writes()).toEqual([]);
    await know(independent);
    expect(await shop.say(approval, 'puppet')).toMatchObject({ outcome: 'approved' });
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(shop.writes()).toHaveLength(1);
  });

  it('may let them approve the writes of others', async () => {
    await know(puppet);
    const { approval } = await shop.upToGate(ASSIGN(), {
      trigger: { fields: { ...BY_OLIVIA.trigger.fields, actor: 'x' } },
    });
    expect(await shop.say(approval, 'puppet')).toMatchObject({ outcome: 'approved' });
  });

  it('between vote and write is detected when the approval is used: people are asked again', async () => {
    await know(independent);
    const { message, approval } = await shop.upToGate(ASSIGN(), BY_OLIVIA);
    expect(await shop.say(approval, 'puppet')).toMatchObject({ outcome: 'approved' });
    await know(puppet);
    await shop.work(message);
    expect(shop.writes()).toEqual([]);
    expect((await shop.openApproval(message)).approvalId).not.toBe(approval.approvalId);
  });
});

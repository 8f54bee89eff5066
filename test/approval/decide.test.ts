import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Person } from '../../lambdas/people/people.ts';
import { APPROVAL_MAX_BYTES } from '../../lambdas/run/approval.ts';
import { hashOf } from '../../lambdas/run/canonical-json.ts';
import { TEST_POLICY_HASH } from '../fakes/fake-policy.ts';
import { ASSIGN, GovernedWorkshop, needsApproval } from '../worker/governance/governed-workshop.ts';
import { SYS_ID } from '../worker/workshop.ts';
import { ANA, allowing, BEN, OLIVIA } from './people.ts';

const NEXT_WEEK = '2026-01-09T12:00:00.000Z';
const EDIT = { kind: 'edit' as const, fields: { category: 'database' } };

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const causedBy = (actor: string) => ({ trigger: { fields: { title: 't', number: 7, actor } } });
const know = (person: Person) => shop.definitions.savePerson('acme', person);
const stored = async ({ runId, approvalId }: { runId: string; approvalId: string }) =>
  await shop.runs.approval('acme', runId, approvalId);

describe('votes are checked again with every vote', () => {
  it.each([
    ['turned out to be a maker', { ...BEN, identities: ['github:ben-gh'] }],
    ['may not decide any more', { ...BEN, role: 'member' as const }],
    ['left the group that was asked', { ...BEN, groups: [] }],
  ])('the vote of somebody who %s does not count towards the quorum', async (_what, benByNow) => {
    shop.policy.decision = () => needsApproval({ quorum: 2, groups: [['network']] });
    await know({ ...ANA, groups: ['network'] });
    await know({ ...OLIVIA, groups: ['network'] });
    const { message, approval } = await shop.upToGate(ASSIGN(), causedBy('ben-gh'));
    expect(await shop.say(approval, 'ben')).toMatchObject({ outcome: 'counted', missing: 1 });
    await know(benByNow);
    expect(await shop.say(approval, 'ana')).toMatchObject({ outcome: 'counted', missing: 1 });
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
    expect(await shop.say(approval, 'olivia')).toMatchObject({ outcome: 'approved' });
    const { commits, run } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(commits.flatMap(({ events }) => events)).toContainEqual(
      expect.objectContaining({ type: 'approval.decided', people: ['ana', 'olivia'] }),
    );
  });

  it('a person who is away and their delegate have one vote, and both see how many are missing', async () => {
    shop.policy.decision = () => needsApproval({ quorum: 2 });
    await know({ ...allowing(ANA, 'chloe'), away: { until: NEXT_WEEK, delegate: 'chloe' } });
    const { approval } = await shop.upToGate(ASSIGN());
    expect(await shop.say(approval, 'chloe')).toMatchObject({ outcome: 'counted', missing: 1 });
    expect(await shop.say(approval, 'ana')).toMatchObject({ outcome: 'counted', missing: 1 });
    expect(await shop.say(approval, 'ben')).toMatchObject({ outcome: 'approved' });
  });

  it('ten people who approve at the same moment are ten votes', async () => {
    shop.policy.decision = () => needsApproval({ quorum: 10 });
    const ten = Array.from({ length: 10 }, (_, n) => `p${n}`);
    for (const id of ten) await know(Person.parse({ id, name: id, role: 'approver', tier: 'high' }));
    const { approval } = await shop.upToGate(ASSIGN());
    const said = await Promise.all(ten.map((person) => shop.say(approval, person)));
    expect(said.filter(({ outcome }) => outcome === 'approved')).toHaveLength(1);
    expect(await stored(approval)).toMatchObject({ status: 'approved', votes: { length: 10 } });
  });
});

describe('a maker', () => {
  it('cannot delegate: neither their own vote nor one that was delegated to them', async () => {
    await know({ ...allowing(ANA, 'chloe'), away: { until: NEXT_WEEK, delegate: 'olivia' } });
    await know({ ...OLIVIA, away: { until: NEXT_WEEK, delegate: 'chloe' } });
    const { approval } = await shop.upToGate(ASSIGN(), causedBy('olivia-gh'));
    await expect(shop.say(approval, 'chloe')).rejects.toMatchObject({ code: 'APPROVAL_FORBIDDEN' });
    expect(await stored(approval)).toMatchObject({ votes: [] });
  });

  it('is recognized in every spelling of their login', async () => {
    await know({ ...BEN, identities: ['github:ben-okafor'] });
    const { approval } = await shop.upToGate(ASSIGN(), causedBy('Ben-Okafor'));
    expect(approval.makers).toEqual(['ben']);
    await expect(shop.say(approval, 'ben')).rejects.toMatchObject({ code: 'APPROVAL_SELF' });
  });
});

describe('a person who decides too late sees', () => {
  it('who rejected it, and not who had approved', async () => {
    shop.policy.decision = () => needsApproval({ quorum: 2 });
    const { approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ben');
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'no' });
    await expect(shop.say(approval, 'olivia')).rejects.toMatchObject({
      code: 'APPROVAL_CLOSED',
      message: expect.stringMatching(/^the approval was rejected by ana at/),
    });
  });

  it('that it expired', async () => {
    shop.policy.decision = () => needsApproval({ quorum: 2 });
    const { message, approval } = await shop.upToGate(ASSIGN('approvals: { expiresSeconds: 60 }'));
    await shop.say(approval, 'ben');
    shop.clock.advance(61_000);
    await shop.work(message);
    await expect(shop.say(approval, 'olivia')).rejects.toMatchObject({
      message: expect.stringMatching(/^the approval expired at/),
    });
  });
});

it('the time until a decision extends the deadline, and the timeline shows it', async () => {
  const { message, approval } = await shop.upToGate(ASSIGN());
  const { deadlineAt } = (await shop.now(message)).run;
  shop.clock.advance(61_000);
  await shop.say(approval, 'ben');
  const { run, commits } = await shop.now(message);
  const extended = new Date(Date.parse(deadlineAt) + 61_000).toISOString();
  expect(run.deadlineAt).toBe(extended);
  expect(commits.at(-1)?.events).toContainEqual({
    type: 'run.deadline_extended',
    deadlineAt: extended,
    waitedMs: 61_000,
  });
});

describe('a key', () => {
  it.each(['auditor', 'operator', 'member'] as const)('decides nothing if it is for the role %s', async (role) => {
    const { approval } = await shop.upToGate(ASSIGN());
    await expect(shop.say(approval, 'ben', 'approve', { role })).rejects.toMatchObject({
      code: 'APPROVAL_FORBIDDEN',
      message: expect.stringMatching(new RegExp(`${role} may not decide.*approver`)),
    });
    expect(await stored(approval)).toMatchObject({ votes: [] });
  });

  it('decides nothing if its person may not', async () => {
    await know({ ...BEN, role: 'member' });
    const { approval } = await shop.upToGate(ASSIGN());
    await expect(shop.say(approval, 'ben', 'approve', { role: 'owner' })).rejects.toMatchObject({
      code: 'APPROVAL_FORBIDDEN',
    });
  });

  it('for the role approver decides up to the tier of its person, even if they are an owner', async () => {
    shop.policy.decision = () => needsApproval({ tier: 'high' });
    const { approval } = await shop.upToGate(ASSIGN());
    const withLess = shop.say(approval, 'olivia', 'approve', { role: 'approver' });
    await expect(withLess).rejects.toMatchObject({ code: 'APPROVAL_FORBIDDEN' });
    expect(await shop.say(approval, 'olivia', 'approve', { role: 'owner' })).toMatchObject({ outcome: 'approved' });
  });

  it('decides on behalf of someone who is away, if it has the full role of its person', async () => {
    await know({ ...allowing(ANA, 'chloe'), away: { until: NEXT_WEEK, delegate: 'chloe' } });
    const { approval } = await shop.upToGate(ASSIGN());
    await expect(shop.say(approval, 'chloe', 'approve', { role: 'auditor' })).rejects.toMatchObject({
      code: 'APPROVAL_FORBIDDEN',
    });
    expect(await shop.say(approval, 'chloe', 'approve', { role: 'member' })).toMatchObject({
      outcome: 'approved',
      approval: { votes: [{ person: 'chloe', via: 'api', onBehalfOf: 'ana' }] },
    });
  });
});

it('an edit that makes the write too large for an approval is refused, and the write does not change', async () => {
  const { approval } = await shop.upToGate(ASSIGN());
  const fields = { category: 'd'.repeat(APPROVAL_MAX_BYTES + 1) };
  await expect(shop.say(approval, 'ana', { kind: 'edit', fields })).rejects.toMatchObject({
    code: 'INPUT_INVALID',
    message: expect.stringContaining(String(APPROVAL_MAX_BYTES)),
  });
  expect(await stored(approval)).toEqual(approval);
});

it('in a run that applies a plan, an edit to another value than the plan showed is refused; the planned write is made', async () => {
  const fields = { category: hashOf('network') };
  const write = { step: 'assign', tool: 'servicenow.incident.update', target: `servicenow:acme:incident:${SYS_ID}` };
  const plan = { planHash: 'a', policyHashes: [TEST_POLICY_HASH], writes: [{ ...write, fields }] };
  const { message, approval } = await shop.upToGate(ASSIGN(), { trigger: { plan } });
  await expect(shop.say(approval, 'ana', EDIT)).rejects.toMatchObject({
    code: 'INPUT_INVALID',
    message: expect.stringMatching(/plan showed another value for category; reject .* apply a new plan/),
  });
  expect(await stored(approval)).toEqual(approval);
  await shop.say(approval, 'ana');
  expect((await shop.finish(message)).run.status).toBe('succeeded');
  expect(shop.outside.incidents.get(SYS_ID)?.fields.category).toBe('network');
});

describe('an edit that is sent twice', () => {
  it('is made once, and the second one is answered as already made', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    expect(await shop.say(approval, 'ana', EDIT)).toMatchObject({ outcome: 'edited' });
    expect(await shop.say(approval, 'ana', EDIT)).toMatchObject({ outcome: 'already' });
    expect((await stored(approval))?.edits).toHaveLength(1);
    const edited = await shop.openApproval(message);
    await expect(shop.say(edited, 'ana', EDIT)).rejects.toMatchObject({ code: 'APPROVAL_SELF' });
    await shop.say(edited, 'ben');
    expect(await shop.say(approval, 'ana', EDIT)).toMatchObject({ outcome: 'already' });
  });

  it.each([
    ['by somebody else', 'ben', EDIT],
    ['with something else in it', 'ana', { kind: 'edit' as const, fields: { category: 'storage' } }],
    ['with more in it', 'ana', { kind: 'edit' as const, fields: { category: 'database', state: '2' } }],
  ])('%s is another edit, of a write that has changed since', async (_what, person, again) => {
    const { approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana', EDIT);
    await expect(shop.say(approval, person, again)).rejects.toMatchObject({ code: 'APPROVAL_STALE' });
  });
});

it('every change of an approval is published once', async () => {
  shop.policy.decision = () => needsApproval({ quorum: 2 });
  const { approval } = await shop.upToGate(ASSIGN());
  const follows = () => shop.outbox.receiveFollows().map(({ approvalId }) => approvalId);
  for (const person of ['ana', 'ben']) {
    await shop.say(approval, person);
    expect(follows()).toEqual([approval.approvalId]);
  }
});

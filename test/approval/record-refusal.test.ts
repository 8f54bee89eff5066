import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { ASSIGN, GovernedWorkshop, needsApproval } from '../worker/governance/governed-workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.policy.decision = () => needsApproval({ groups: [['network']] });
});
afterEach(() => vi.unstubAllGlobals());

const eventsOf = async (message: StepMessage, type: string) =>
  (await shop.now(message)).commits.flatMap(({ events }) => events.filter((event) => event.type === type));

it('a refused decision is recorded once for each person and reason, and the vote that counts has the rights of its voter', async () => {
  const { message, approval } = await shop.upToGate(ASSIGN(), { trigger: { makers: ['olivia-gh'] } });
  const { approvalId } = approval;
  const refused = { type: 'approval.refused', step: 'assign', approvalId, via: 'console' };
  for (const _again of [1, 2]) {
    await expect(shop.say(approval, 'olivia')).rejects.toMatchObject({ code: 'APPROVAL_SELF' });
    await expect(shop.say(approval, 'ana', { kind: 'reject', reason: 'no' })).rejects.toMatchObject({
      code: 'APPROVAL_FORBIDDEN',
    });
    await expect(shop.say(approval, 'ben', 'approve', { actionHash: 'of an earlier write' })).rejects.toMatchObject({
      code: 'APPROVAL_STALE',
    });
  }
  expect(await eventsOf(message, 'approval.refused')).toEqual([
    { ...refused, person: 'olivia', decision: 'approve', because: 'maker' },
    { ...refused, person: 'ana', decision: 'reject', because: 'not_eligible' },
    { ...refused, person: 'ben', decision: 'approve', because: 'stale' },
  ]);
  await shop.say(approval, 'ben');
  expect(await eventsOf(message, 'approval.voted')).toMatchObject([
    { person: 'ben', rights: { role: 'approver', tier: 'medium', groups: ['network'] } },
  ]);
  expect((await shop.finish(message)).run.status).toBe('succeeded');
});

it('nothing is recorded for a run that has ended', async () => {
  const { message, approval } = await shop.upToGate(ASSIGN());
  await shop.command(message, { kind: 'cancel' });
  await shop.finish(message);
  const { commits } = await shop.now(message);
  await expect(shop.say(approval, 'ana')).rejects.toMatchObject({ code: 'APPROVAL_CLOSED' });
  expect((await shop.now(message)).commits).toHaveLength(commits.length);
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Person } from '../../../lambdas/people/people.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { die, SYS_ID } from '../workshop.ts';
import { GovernedWorkshop, needsApproval } from './governed-workshop.ts';

/** Source 001, 7.2: retries require an operator's approval if the blast radius is medium or more. */

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.policy.decision = () => ALLOWED;
  await shop.definitions.savePerson('acme', Person.parse({ id: 'oscar', name: 'Oscar', role: 'operator' }));
  await shop.definitions.savePerson('acme', Person.parse({ id: 'opal', name: 'Opal', role: 'operator' }));
});
afterEach(() => vi.unstubAllGlobals());

const note = (blastRadius: string, more = '') => `
name: note
blastRadius: ${blastRadius}
${more}
steps:
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: seen } }
`;
const notes = () => shop.outside.incidents.get(SYS_ID)?.workNotes ?? [];
const sent = () => shop.outside.callsOf('PATCH servicenow');

/** Works again when the step's backoff is over. */
async function laterOn(message: StepMessage) {
  shop.clock.advance(600_000);
  await shop.work(message);
  return shop.now(message);
}

describe('a write with blast radius medium that was refused', () => {
  it.each([
    ['429', { status: 429 }],
    ['a server error that changed nothing', { status: 503 }],
  ])('after %s is sent again only after an operator has approved', async (_name, fault) => {
    const message = await shop.begin(note('medium'));
    shop.outside.next('PATCH servicenow', fault);
    await shop.work(message);
    let now = await laterOn(message);
    if (now.run.status !== 'waiting_approval') now = await laterOn(message);
    expect(now.run.status).toBe('waiting_approval');
    expect(sent()).toHaveLength(1);
    const approval = await shop.openApproval(message);
    expect(approval).toMatchObject({
      asks: 'retry',
      requirement: { tier: 'low', quorum: 1, groups: [], operators: true },
    });
    await shop.say(approval, 'oscar');
    await shop.work(message);
    now = await shop.now(message);
    expect(now.run.status).toBe('succeeded');
    expect(sent()).toHaveLength(2);
    expect(notes()).toHaveLength(1);
    expect(now.receipts).toMatchObject([{ grounds: { approvalId: approval.approvalId } }]);
  });

  it('asks again before each further attempt, and not more often than the workflow allows attempts', async () => {
    const message = await shop.begin(note('medium').replace('tool:', 'retry: { attempts: 3 }, tool:'));
    shop.outside.next('PATCH servicenow', ...Array(9).fill({ status: 429 }));
    await shop.work(message);
    for (let attempt = 2; attempt <= 3; attempt += 1) {
      await laterOn(message);
      await shop.say(await shop.openApproval(message), 'oscar');
      await shop.work(message);
      expect(sent()).toHaveLength(attempt);
    }
    const { run, commits } = await shop.now(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'RETRIES_EXHAUSTED' } });
    const events = commits.flatMap(({ events }) => events);
    expect(events.filter(({ type }) => type === 'approval.requested')).toHaveLength(2);
    expect(events).toContainEqual(expect.objectContaining({ type: 'approval.stale', because: 'used' }));
  });

  it('is not sent again after a rejection', async () => {
    const message = await shop.begin(note('medium'));
    shop.outside.next('PATCH servicenow', { status: 429 });
    await shop.work(message);
    await laterOn(message);
    await shop.say(await shop.openApproval(message), 'oscar', { kind: 'reject', reason: 'not during the freeze' });
    expect((await shop.now(message)).run).toMatchObject({ error: { code: 'APPROVAL_REJECTED' } });
    expect(sent()).toHaveLength(1);
  });
});

describe('no approval is requested', () => {
  it('when nothing fails', async () => {
    const { run } = await shop.finish(await shop.begin(note('medium')));
    expect(run.status).toBe('succeeded');
  });

  it('when the blast radius is low', async () => {
    const message = await shop.begin(note('low'));
    shop.outside.next('PATCH servicenow', { status: 429 });
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(sent()).toHaveLength(2);
  });

  it('when no request for the write was sent: the target could not be reached', async () => {
    const message = await shop.begin(note('high'));
    await shop.work(message);
    for (const person of ['ana', 'olivia']) await shop.say(await shop.openApproval(message), person);
    shop.outside.next('PATCH servicenow', 'unreachable', 'unreachable');
    const { run, commits } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    const asked = commits.flatMap(({ events }) => events.filter(({ type }) => type === 'approval.requested'));
    expect(asked).toMatchObject([{ asks: 'always_two' }]);
  });

  it('when the write is found at its target although its response was lost', async () => {
    const message = await shop.begin(note('medium'));
    shop.outside.next('PATCH servicenow', 'lost_answer');
    const { run, receipts } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(receipts).toMatchObject([{ recovered: true }]);
    expect(sent()).toHaveLength(1);
  });
});

describe('after a worker died during a write (001, 7.3)', () => {
  it('a write that the probe does not find is sent again only after an operator has approved', async () => {
    const message = await shop.begin(note('medium'));
    const killed = Promise.withResolvers<void>();
    shop.disturb((name, run) => {
      if (name !== 'PATCH servicenow') return run();
      killed.resolve();
      return die();
    });
    void shop.work(message);
    await killed.promise;
    shop.disturb((_name, run) => run());
    await laterOn(message);
    expect((await laterOn(message)).run.status).toBe('waiting_approval');
    expect(sent()).toEqual([]);
    await shop.say(await shop.openApproval(message), 'oscar');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(notes()).toHaveLength(1);
  });
});

describe('who decides on a retry', () => {
  async function stopped(yaml: string) {
    const message = await shop.begin(yaml);
    shop.outside.next('PATCH servicenow', { status: 429 });
    await shop.work(message);
    await laterOn(message);
    return { message, approval: await shop.openApproval(message) };
  }

  it.each(['oscar', 'ben', 'olivia'])('%s may: an operator, an approver, an owner', async (person) => {
    const { approval } = await stopped(note('medium'));
    expect(await shop.say(approval, person)).toMatchObject({ outcome: 'approved' });
  });

  it('a member may not', async () => {
    const { approval } = await stopped(note('medium'));
    await expect(shop.say(approval, 'chloe')).rejects.toMatchObject({ code: 'APPROVAL_FORBIDDEN' });
  });

  it('an operator with an operator’s key may, and so may an owner with one', async () => {
    const { approval } = await stopped(note('medium'));
    expect(await shop.say(approval, 'olivia', 'approve', { role: 'operator' })).toMatchObject({ outcome: 'approved' });
  });

  it('if policy requires an approval of the write itself, only the people that policy names may', async () => {
    shop.policy.decision = () => needsApproval({ tier: 'high' });
    const message = await shop.begin(note('medium'));
    await shop.work(message);
    await expect(shop.say(await shop.openApproval(message), 'oscar')).rejects.toMatchObject({
      code: 'APPROVAL_FORBIDDEN',
    });
    await shop.say(await shop.openApproval(message), 'ana');
    shop.outside.next('PATCH servicenow', { status: 429 });
    await shop.work(message);
    await laterOn(message);
    const again = await shop.openApproval(message);
    expect(again).toMatchObject({ asks: 'retry', requirement: { tier: 'high', quorum: 1 } });
    expect(again.requirement.operators).toBeUndefined();
    await expect(shop.say(again, 'oscar')).rejects.toMatchObject({ code: 'APPROVAL_FORBIDDEN' });
    await shop.say(again, 'ana');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });

  it('the operator who retries a failed step may not approve the retry', async () => {
    const message = await shop.begin(
      note('medium', 'onFailure: pause').replace('tool:', 'retry: { attempts: 1 }, tool:'),
    );
    shop.outside.next('PATCH servicenow', { status: 429 });
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('paused');
    await shop.command(message, { kind: 'retry' });
    await shop.work(message);
    const approval = await shop.openApproval(message);
    expect(approval.asks).toBe('retry');
    await expect(shop.say(approval, 'oscar')).rejects.toMatchObject({ code: 'APPROVAL_SELF' });
    await shop.say(approval, 'opal');
    expect((await shop.finish(message)).run).toMatchObject({ status: 'succeeded', resumeCount: 1 });
  });

  it('an operator may not approve a write that was edited meanwhile', async () => {
    const { message, approval } = await stopped(note('medium'));
    await shop.say(approval, 'ben', { kind: 'edit', fields: { note: 'something else' } });
    const edited = await shop.openApproval(message);
    expect(edited.requirement).toEqual({ tier: 'low', quorum: 1, groups: [] });
    await expect(shop.say(edited, 'oscar')).rejects.toMatchObject({ code: 'APPROVAL_FORBIDDEN' });
  });
});

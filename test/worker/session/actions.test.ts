import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { actionView } from '../../../lambdas/api/actions/action-view.ts';
import type { CountersignError } from '../../../lambdas/run/errors.ts';
import { REFUSALS_RECORDED_MAX } from '../../../lambdas/run/session.ts';
import { controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import { type ActionProposal, proposeAction } from '../../../lambdas/run-changes/session/propose-action.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { DENIED, GovernedWorkshop, needsApproval } from '../governance/governed-workshop.ts';
import { eventTypes, ISSUE } from '../workshop.ts';
import { beginWithSession, ISSUE_FIELDS } from './open-session.ts';

const LABEL: ActionProposal = { key: 'label-1', tool: 'github.labels.add', input: { labels: ['triage'] } };

let shop: GovernedWorkshop;
let parent: StepMessage;
afterEach(() => vi.unstubAllGlobals());
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.policy.decision = () => ALLOWED;
  parent = await beginWithSession(shop);
});

const target = () => ({ ...parent, stepIndex: 0 });
const propose = (proposal: ActionProposal = LABEL) => proposeAction(shop.worker, target(), proposal);
const refused = (proposing: Promise<unknown>) =>
  proposing.then(
    () => undefined,
    (error: CountersignError) => error,
  );
const finished = async (runId: string) => shop.finish({ tenant: 'acme', runId });

describe('an action of a session', () => {
  it('is a run of its own that makes the call once, in the name of the automation of the session', async () => {
    const { isNew, action } = await propose();
    expect(isNew).toBe(true);
    expect(actionView(action)).toMatchObject({ status: 'pending', session: { runId: parent.runId, step: 'session' } });
    const done = await finished(action.run.runId);
    const { run: parentRun } = await shop.now(parent);
    expect(done.run).toMatchObject({
      status: 'succeeded',
      automation: parentRun.automation,
      workflow: { name: 'triage' },
    });
    expect(actionView(done)).toMatchObject({ status: 'succeeded', tool: 'github.labels.add' });
    expect(shop.outside.issueLabels.get(ISSUE)).toEqual(['bug', 'triage']);
    expect(shop.writes()).toHaveLength(1);
    expect((await shop.now(parent)).steps[0]?.session?.actions).toEqual([action.run.runId]);
  });

  it('that is proposed again with the same key starts nothing; another call with the key is a conflict', async () => {
    const first = await propose();
    const second = await propose();
    expect(second).toMatchObject({ isNew: false, action: { run: { runId: first.action.run.runId } } });
    expect(await refused(propose({ ...LABEL, input: { labels: ['other'] } }))).toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
    await finished(first.action.run.runId);
    expect(shop.writes()).toHaveLength(1);
  });

  it('that is proposed twice at the same time is one action', async () => {
    const both = await Promise.all([propose(), propose()]);
    expect(new Set(both.map(({ action }) => action.run.runId)).size).toBe(1);
    expect((await shop.now(parent)).steps[0]?.session?.actions).toHaveLength(1);
    await finished(both[0].action.run.runId);
    expect(shop.writes()).toHaveLength(1);
  });

  it('waits for an approval where policy requires one; the session and the makers of its run cannot approve', async () => {
    shop.policy.decision = () => needsApproval();
    const { action } = await propose();
    const message = { tenant: 'acme', runId: action.run.runId };
    await shop.work(message);
    const waiting = await shop.now(message);
    const approval = await shop.openApproval(message);
    expect(actionView(waiting)).toMatchObject({
      status: 'waiting_approval',
      approval: { approvalId: approval.approvalId, path: `/approvals/${approval.approvalId}` },
      reasons: ['somebody must look at it'],
    });
    const ofParent = (await shop.now(parent)).run;
    expect(approval.makers).toEqual(expect.arrayContaining(['session:triage-bot', ...(ofParent.makers ?? [])]));
    expect(shop.writes()).toEqual([]);
    await shop.say(approval, 'olivia');
    expect((await finished(message.runId)).run.status).toBe('succeeded');
  });

  it('that policy denies is never made, and says why', async () => {
    shop.policy.decision = () => DENIED;
    const { action } = await propose();
    const done = await finished(action.run.runId);
    expect(actionView(done)).toMatchObject({
      status: 'denied',
      reasons: ['not on my watch'],
      error: { code: 'POLICY_DENIED' },
    });
    expect(shop.writes()).toEqual([]);
  });

  it('whose target the session chose needs an approval that says so, although policy allows it', async () => {
    const assign = { key: 'assign', tool: 'github.assignees.add', input: { assignees: ['mallory'] } };
    const { action } = await propose(assign);
    const message = { tenant: 'acme', runId: action.run.runId };
    await shop.work(message);
    expect(await shop.openApproval(message)).toMatchObject({
      asks: 'tainted',
      action: { derived: [{ field: 'assignees', how: 'chosen', from: ['session'] }] },
    });
  });

  it('never evaluates what the session wrote as an expression', async () => {
    const text = '{% $string(1 + 1) %}';
    const { action } = await propose({ ...LABEL, input: { labels: [text] } });
    await finished(action.run.runId);
    expect(shop.outside.issueLabels.get(ISSUE)).toContain(text);
  });

  it('has a receipt that says how to undo it', async () => {
    const { action } = await propose();
    const done = await finished(action.run.runId);
    expect(done.receipts[0]).toMatchObject({ outcome: 'succeeded', reversal: { tool: 'github.labels.remove' } });
  });
});

describe('a session cannot', () => {
  const refusals = async () => (await shop.now(parent)).steps[0]?.session?.refused;

  it.each([
    ['use another tool', { key: 'k', tool: 'github.issue.close', input: ISSUE_FIELDS }, 'tool_not_allowed'],
    ['invent a tool', { key: 'k', tool: '__proto__', input: {} }, 'tool_not_allowed'],
    ['change a fixed target', { ...LABEL, input: { owner: 'evil', labels: ['x'] } }, 'input_not_allowed'],
    [
      'send fields that the tool does not have',
      { ...LABEL, input: { labels: ['x'], tenant: 'other' } },
      'input_not_allowed',
    ],
  ])('%s: it is refused, counted and recorded', async (_name, proposal, because) => {
    expect(await refused(propose(proposal))).toMatchObject({ code: 'ACTION_NOT_ALLOWED', because });
    expect(await refusals()).toBe(1);
    expect(eventTypes(await shop.now(parent))).toContain('session.action_refused');
    expect(shop.queue.receive()).toEqual([]);
  });

  it('propose more actions than its step allows, and endless calls do not make the history endless', async () => {
    for (const key of ['1', '2', '3']) await propose({ ...LABEL, key });
    for (let call = 0; call < REFUSALS_RECORDED_MAX + 5; call += 1) {
      expect(await refused(propose({ ...LABEL, key: `more-${call}` }))).toMatchObject({ because: 'too_many_actions' });
    }
    expect(await refusals()).toBe(REFUSALS_RECORDED_MAX);
    const proposed = eventTypes(await shop.now(parent)).filter((type) => type === 'session.action_proposed');
    expect(proposed).toHaveLength(3);
  });

  it('act after its run was stopped', async () => {
    await controlRun(shop.worker, parent, { kind: 'cancel' }, 'oscar');
    expect(await refused(propose())).toMatchObject({ code: 'RUN_TERMINAL_STATE' });
  });

  it('act after the deadline of its step', async () => {
    shop.clock.advance(3 * 60 * 60 * 1000);
    expect(await refused(propose())).toMatchObject({ code: 'SESSION_CLOSED' });
  });

  it('act for a step that has no session', async () => {
    expect(await refused(proposeAction(shop.worker, { ...parent, stepIndex: 5 }, LABEL))).toMatchObject({
      code: 'SESSION_CLOSED',
    });
  });
});

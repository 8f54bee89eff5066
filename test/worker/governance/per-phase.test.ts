import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { controlRun } from '../../../lambdas/run-changes/control/control-run.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { approvalCard } from '../../../lambdas/slack/card/approval-card.ts';
import { showAllModal } from '../../../lambdas/slack/modal/show-all-modal.ts';
import { PEOPLE } from '../../approval/people.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { wholeRun } from '../../fakes/whole-run.ts';
import { ISSUE, SYS_ID } from '../workshop.ts';
import { DENIED, GovernedWorkshop, needsApproval } from './governed-workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  shop.policy.decision = () => ALLOWED;
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const UPDATE = (id: string, fields: string, more = '') =>
  `  - { id: ${id}, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { ${fields} } }${more} }`;
const LABEL = (label: string, more = '') =>
  `  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [${label}] }${more} }`;
const PHASED = (...steps: string[]) =>
  ['name: phased', 'validation: { mode: per_phase }', 'steps:', ...steps].join('\n');
const THREE = PHASED(UPDATE('assign', 'category: network'), LABEL('triage'), UPDATE('close', 'state: "6"'));
const approvalsOf = async ({ tenant, runId }: StepMessage) =>
  (await wholeRun(shop.runs, tenant, runId))?.approvals ?? [];
const types = async (message: StepMessage, type: string) =>
  (await shop.now(message)).commits.flatMap(({ events }) => events.filter((event) => event.type === type));

describe('one approval for a phase', () => {
  it('shows every write of it with the current values, and covers them all', async () => {
    const { message, approval } = await shop.upToGate(THREE);
    expect(approval).toMatchObject({
      stepId: 'assign',
      asks: 'mode',
      phase: {
        name: 'main',
        askedLater: [],
        writes: [
          {
            stepId: 'label',
            action: { target: `github:${ISSUE}`, fields: { labels: ['triage'] } },
            before: { triage: false },
          },
          { stepId: 'close', action: { fields: { state: '6' } }, before: { state: '1' }, after: { state: '6' } },
        ],
      },
    });
    const card = JSON.stringify(approvalCard(approval, PEOPLE, Date.parse(approval.requestedAt)));
    expect(card).toContain('2 more writes of the phase main, approved together with it');
    for (const shown of ['triage', 'github.labels.add', ISSUE, 'close']) expect(card).toContain(shown);
    const all = JSON.stringify(showAllModal(approval, 0));
    for (const shown of ['triage', 'github.labels.add', 'also in the phase main']) expect(all).toContain(shown);
    await shop.say(approval, 'ana');
    const { run, receipts, sealed } = await shop.finish(message);
    expect({ status: run.status, sealed }).toEqual({ status: 'succeeded', sealed: true });
    expect(receipts.map(({ grounds }) => grounds?.approvalId)).toEqual([1, 2, 3].map(() => approval.approvalId));
    expect(await approvalsOf(message)).toHaveLength(1);
    const bundle = JSON.parse(shop.evidence.file(run.runId, 'bundle.json').toString());
    expect(bundle.approvals[0].phase.writes.map(({ step }: { step: string }) => step)).toEqual(['label', 'close']);
    expect(bundle.steps.map(({ approvalId }: { approvalId: string }) => approvalId)).toEqual(
      [1, 2, 3].map(() => approval.approvalId),
    );
  });

  it('has another hash if one of its writes is different', async () => {
    const hashes = new Set<string>();
    for (const label of ['triage', 'urgent']) {
      const yaml = THREE.replace('triage', label).replace('name: phased', `name: phased-${label}`);
      hashes.add((await shop.upToGate(yaml)).approval.actionHash);
    }
    expect(hashes.size).toBe(2);
  });

  it('requires what the strictest of its writes requires', async () => {
    shop.policy.decision = ({ action }) =>
      action.tool === 'github.labels.add' ? needsApproval({ tier: 'high', quorum: 2 }) : ALLOWED;
    const { message, approval } = await shop.upToGate(THREE);
    expect(approval.requirement).toMatchObject({ tier: 'high', quorum: 2 });
    await shop.say(approval, 'ana');
    await shop.say(approval, 'olivia');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(await approvalsOf(message)).toHaveLength(1);
  });

  it('names writes that need later outputs; these have their own approval', async () => {
    const yaml = PHASED(
      UPDATE('assign', 'category: network'),
      '  - { id: say, tool: github.comment.create, with: { owner: octo-org, repo: payments, number: 7, body: hello } }',
      `  - { id: link, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "said {% steps.say.output.commentId %}" } }`,
    );
    const { message, approval } = await shop.upToGate(yaml);
    expect(approval.phase?.writes.map(({ stepId }) => stepId)).toEqual(['say']);
    expect(approval.phase?.askedLater).toEqual([
      { stepId: 'link', tool: 'servicenow.incident.add_work_note', because: 'it needs the output of say' },
    ]);
    expect(JSON.stringify(approvalCard(approval, PEOPLE, 0))).toMatch(/Not covered, needs its own approval: .*link/);
    await shop.say(approval, 'ana');
    await shop.work(message);
    const second = await shop.openApproval(message);
    expect(second).toMatchObject({ stepId: 'link', asks: 'mode' });
    await shop.say(second, 'ana');
    expect(await shop.finish(message)).toMatchObject({ run: { status: 'succeeded' }, sealed: true });
  });

  it('does not list skipped writes, and names writes that policy denies', async () => {
    shop.policy.decision = ({ action }) => (action.tool === 'github.labels.add' ? DENIED : ALLOWED);
    const yaml = PHASED(
      UPDATE('assign', 'category: network'),
      UPDATE('never', 'state: "3"', ', when: "{% false %}"'),
      LABEL('triage'),
    );
    const { approval } = await shop.upToGate(yaml);
    expect(approval.phase?.writes).toEqual([]);
    expect(approval.phase?.askedLater).toMatchObject([
      { stepId: 'label', because: expect.stringMatching(/policy denies/) },
    ]);
  });

  it('does not cover another phase', async () => {
    const { message, approval } = await shop.upToGate(
      PHASED(UPDATE('assign', 'category: network'), UPDATE('check', 'state: "6"', ', phase: postchecks')),
    );
    expect(approval.phase).toBeUndefined();
    await shop.say(approval, 'ana');
    await shop.work(message);
    expect(await shop.openApproval(message)).toMatchObject({ stepId: 'check' });
  });
});

describe('a write that the approval of its phase showed', () => {
  it('needs another approval if it has changed, even if the phase was approved', async () => {
    const { message, approval } = await shop.upToGate(THREE);
    await shop.say(approval, 'ana');
    shop.policy.decision = ({ action }) =>
      action.fields.state === '6' ? { ...ALLOWED, policyHash: 'another' } : ALLOWED;
    await shop.work(message);
    const again = await shop.openApproval(message);
    expect(again).toMatchObject({ stepId: 'close' });
    expect(shop.writes()).toHaveLength(2);
  });

  it('needs another approval after the first has expired', async () => {
    const yaml = `approvals: { expiresSeconds: 60 }\n${PHASED(
      UPDATE('assign', 'category: network'),
      '  - { id: rest, tool: wait, with: { seconds: 90 } }',
      UPDATE('close', 'state: "6"'),
    )}`;
    const { message, approval } = await shop.upToGate(yaml);
    expect(approval.phase?.writes).toHaveLength(1);
    await shop.say(approval, 'ana');
    await shop.work(message);
    shop.clock.advance(90_000);
    await shop.work(message);
    expect(await shop.openApproval(message)).toMatchObject({ stepId: 'close' });
    expect(shop.writes()).toHaveLength(1);
  });

  it('needs another approval if a voter has become its maker by then', async () => {
    const yaml = PHASED(
      UPDATE('assign', 'category: network'),
      '  - { id: signal, tool: wait.external, with: { event: go } }',
      UPDATE('close', 'state: "6"'),
    );
    const { message, approval } = await shop.upToGate(yaml);
    await shop.say(approval, 'olivia');
    await shop.work(message);
    await controlRun(shop.worker, message, { kind: 'signal', event: 'go', payload: null }, 'olivia');
    await shop.work(message);
    expect(await shop.openApproval(message)).toMatchObject({ stepId: 'close', makers: ['olivia'] });
    expect(shop.writes()).toHaveLength(1);
  });

  it('is not covered on a retry', async () => {
    const yaml = `onFailure: pause\n${PHASED(UPDATE('assign', 'category: network'), LABEL('triage'))}`;
    const { message, approval } = await shop.upToGate(yaml);
    await shop.say(approval, 'ana');
    shop.outside.next('POST github', { status: 403 });
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('paused');
    await shop.command(message, { kind: 'retry' });
    await shop.work(message);
    expect(await shop.openApproval(message)).toMatchObject({ stepId: 'label' });
    expect(shop.outside.issueLabels.get(ISSUE)).toEqual(['bug']);
  });

  it('with onDrift: refuse is made only if its target is as people were shown it', async () => {
    const { message, approval } = await shop.upToGate(`onDrift: refuse\n${THREE}`);
    await shop.say(approval, 'ana');
    const incident = shop.outside.incidents.get(SYS_ID);
    if (incident) incident.fields.state = '3';
    expect((await shop.finish(message)).run).toMatchObject({ error: { code: 'DRIFTED' } });
    expect(incident?.fields.state).toBe('3');
  });
});

describe('parallel writes of a phase', () => {
  const SIDE = (more = '') =>
    `${more}\n${PHASED(UPDATE('a', 'category: network', ', needs: []'), UPDATE('b', 'state: "2"', ', needs: []'))}`;

  it('wait for one approval and are both made after it', async () => {
    const { message, approval } = await shop.upToGate(SIDE());
    expect(await approvalsOf(message)).toHaveLength(1);
    expect((await shop.now(message)).steps.map(({ status }) => status)).toEqual([
      'waiting_approval',
      'waiting_approval',
    ]);
    expect(await types(message, 'approval.covered')).toMatchObject([{ step: 'b', approvalId: approval.approvalId }]);
    await shop.say(approval, 'ana');
    const { run, sealed } = await shop.finish(message);
    expect({ status: run.status, sealed }).toEqual({ status: 'succeeded', sealed: true });
    expect(shop.writes()).toHaveLength(2);
  });

  it('are both refused by one rejection', async () => {
    const { message, approval } = await shop.upToGate(SIDE());
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'never' });
    const { run, steps, sealed } = await shop.finish(message);
    expect({ status: run.status, sealed }).toEqual({ status: 'failed_terminal', sealed: true });
    expect(steps.map((step) => 'error' in step && step.error.code)).toEqual(['APPROVAL_REJECTED', 'APPROVAL_REJECTED']);
    expect(shop.writes()).toEqual([]);
  });

  it('both expire with it', async () => {
    const { message } = await shop.upToGate(SIDE('approvals: { expiresSeconds: 60 }'));
    shop.clock.advance(60_000);
    await shop.work(message);
    const { run, steps } = await shop.now(message);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'APPROVAL_EXPIRED' } });
    expect(steps.map((step) => 'error' in step && step.error.code)).toEqual(['APPROVAL_EXPIRED', 'APPROVAL_EXPIRED']);
    expect(await types(message, 'approval.expired')).toHaveLength(1);
    expect((await shop.finish(message)).sealed).toBe(true);
  });

  it('are both canceled with their run', async () => {
    const { message } = await shop.upToGate(SIDE());
    await shop.command(message, { kind: 'cancel' });
    expect(await types(message, 'approval.canceled')).toHaveLength(1);
    expect((await shop.finish(message)).sealed).toBe(true);
  });

  it('need one new approval when both are retried', async () => {
    const { message, approval } = await shop.upToGate(SIDE('onReject: pause'));
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'never' });
    await shop.command(message, { kind: 'retry' });
    await shop.work(message);
    expect(shop.writes()).toEqual([]);
    for (const open of (await approvalsOf(message)).filter(({ status }) => status === 'requested'))
      await shop.say(open, 'ana');
    expect(await shop.finish(message)).toMatchObject({ run: { status: 'succeeded' }, sealed: true });
    expect(shop.writes()).toHaveLength(2);
  });
});

it('an edit of the first write does not change the others, and all of them need another approval', async () => {
  const { message, approval } = await shop.upToGate(THREE);
  await shop.say(approval, 'ana', { kind: 'edit', fields: { category: 'database' } });
  const edited = await shop.openApproval(message);
  expect(edited.actionHash).not.toBe(approval.actionHash);
  expect(edited.phase?.writes).toEqual(approval.phase?.writes);
  await expect(shop.say(approval, 'olivia')).rejects.toMatchObject({ code: 'APPROVAL_STALE' });
  await shop.say(edited, 'olivia');
  const { run, sealed } = await shop.finish(message);
  expect({ status: run.status, sealed }).toEqual({ status: 'succeeded', sealed: true });
  expect(shop.outside.incidents.get(SYS_ID)?.fields).toMatchObject({ category: 'database', state: '6' });
});

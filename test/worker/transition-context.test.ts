import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sha256Hex } from '../../lambdas/run/canonical-json.ts';
import type { StatusChanged } from '../../lambdas/run/statuses/transitions.ts';
import { controlRun } from '../../lambdas/run-changes/control/control-run.ts';
import type { StepMessage } from '../../lambdas/run-changes/step-queue.ts';
import { ALLOWED } from '../fakes/fake-policy.ts';
import { ASSIGN, DENIED, GovernedWorkshop } from './governance/governed-workshop.ts';
import { die, SYS_ID } from './workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const WAITS = 'name: waits\nsteps:\n  - { id: signal, tool: wait.external, with: { event: go, timeoutSeconds: 60 } }';
const changes = async (message: StepMessage): Promise<StatusChanged[]> =>
  (await shop.now(message)).commits.flatMap(({ events }) =>
    events.flatMap((event) => (event.type === 'run.status_changed' ? [event] : [])),
  );
const last = async (message: StepMessage) => (await changes(message)).at(-1);

describe('a change of a run’s status says who caused it:', () => {
  it('the event that started the run, with its source and id', async () => {
    const trigger = { event: 'issues.labeled', fields: { title: 't', number: 7, actor: 'octocat' } };
    const { message } = await shop.upToGate(ASSIGN(), { trigger });
    const by = {
      initiator: 'webhook',
      actor: 'github',
      externalEvent: { type: 'issues.labeled', source: 'github', id: `github:${message.runId}` },
    };
    expect((await changes(message)).slice(0, 3)).toEqual(
      ['enriching', 'ready', 'running'].map((to) => expect.objectContaining({ to, ...by })),
    );
  });

  it('the approval that the run waits for', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    expect(await last(message)).toEqual({
      type: 'run.status_changed',
      from: 'running',
      to: 'waiting_approval',
      initiator: 'system',
      actor: 'worker',
      approval: {
        approvalId: approval.approvalId,
        action: 'servicenow.incident.update',
        requestedBy: 'label-new-issue',
      },
    });
  });

  it('the person whose approval was the last one needed, with all approvers', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN('blastRadius: high'));
    await shop.say(approval, 'olivia');
    await shop.say(approval, 'ana');
    expect(await last(message)).toMatchObject({
      from: 'waiting_approval',
      to: 'running',
      initiator: 'approval',
      actor: 'ana',
      approval: { approvalId: approval.approvalId, decision: 'approved', decidedBy: ['olivia', 'ana'] },
    });
  });

  it('the person whose approval found no free slot, once there is one', async () => {
    await shop.definitions.saveSettings('acme', { caps: { maxConcurrency: 1 }, workspaces: {}, counterShards: 1 });
    const { message, approval } = await shop.upToGate(ASSIGN());
    shop.policy.decision = () => ALLOWED;
    const other = await shop.begin(ASSIGN().replace('name: assign', 'name: other').replace('network', 'database'));
    shop.disturb((name, run) => (name === 'PATCH servicenow' ? die() : run()));
    void shop.work(other);
    await expect.poll(async () => (await shop.now(other)).run.status).toBe('running');
    shop.disturb((_name, run) => run());
    await shop.say(approval, 'ana');
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
    await shop.finish(other);
    await shop.finish(message);
    expect((await changes(message)).find(({ from }) => from === 'waiting_approval')).toMatchObject({
      initiator: 'approval',
      actor: 'ana',
    });
  });

  it.each([
    ['fails', ASSIGN(), 'failed_terminal'],
    ['pauses', ASSIGN('onReject: pause'), 'paused'],
  ])('the person whose rejection %s the run, with their reason', async (_what, yaml, to) => {
    const { message, approval } = await shop.upToGate(yaml);
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'not now' });
    expect(await last(message)).toMatchObject({
      to,
      initiator: 'approval',
      actor: 'ana',
      approval: {
        approvalId: approval.approvalId,
        decision: 'rejected',
        decidedBy: ['ana'],
        reasonHash: sha256Hex('not now'),
      },
    });
  });

  it('the person whose rejection begins a rollback', async () => {
    shop.policy.decision = ({ action }) => (action.fields.state === '6' ? { ...ALLOWED, ...ASKED } : ALLOWED);
    const yaml = [
      'name: back',
      'onFailure: rollback',
      'steps:',
      `  - { id: take, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { state: "2" } } }`,
      `  - { id: close, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { state: "6" } } }`,
    ].join('\n');
    const { message, approval } = await shop.upToGate(yaml);
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'never' });
    expect(await last(message)).toMatchObject({ to: 'rolling_back', initiator: 'approval', actor: 'ana' });
    const { run, sealed } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'failed_terminal', rollback: { actor: 'ana' } });
    expect(sealed).toBe(true);
  });

  it('the timeout of an approval that nobody decided', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN('approvals: { expiresSeconds: 60 }'));
    shop.clock.advance(60_000);
    await shop.work(message);
    expect(await last(message)).toMatchObject({
      to: 'failed_terminal',
      initiator: 'timeout',
      approval: { approvalId: approval.approvalId, decision: 'expired' },
    });
  });

  it('policy, by the hash of the set that denied', async () => {
    shop.policy.decision = () => DENIED;
    const message = await shop.begin(ASSIGN());
    await shop.work(message);
    expect(await last(message)).toMatchObject({
      to: 'failed_terminal',
      initiator: 'policy',
      actor: `policy:${DENIED.policyHash}`,
    });
  });

  it('the person who sent a signal, with the id they gave it', async () => {
    const message = await shop.begin(WAITS);
    await shop.work(message);
    expect(await last(message)).toMatchObject({
      to: 'waiting_external',
      initiator: 'system',
      externalEvent: { type: 'signal', signal: 'go', source: 'api', deadlineAt: expect.stringMatching(/Z$/) },
    });
    await controlRun(shop.worker, message, { kind: 'signal', event: 'go', payload: null, id: 'deploy-81' }, 'chloe');
    const externalEvent = { type: 'signal', signal: 'go', source: 'api', id: 'deploy-81' };
    expect(await last(message)).toMatchObject({ to: 'succeeded', initiator: 'user', actor: 'chloe', externalEvent });
  });

  it('a signal without an id gets a unique one', async () => {
    const message = await shop.begin(WAITS);
    await shop.work(message);
    await controlRun(shop.worker, message, { kind: 'signal', event: 'go', payload: null }, 'chloe');
    expect(await last(message)).toMatchObject({ externalEvent: { id: `${message.runId}.3-0` } });
  });

  it('the timeout of a signal that did not come', async () => {
    const message = await shop.begin(WAITS);
    await shop.work(message);
    shop.clock.advance(60_000);
    await shop.work(message);
    expect(await last(message)).toMatchObject({
      to: 'timed_out',
      initiator: 'timeout',
      externalEvent: { type: 'signal', signal: 'go' },
    });
  });
});

const ASKED = {
  verdict: 'needs_approval' as const,
  requirement: { tier: 'medium' as const, quorum: 1, groups: [] },
};

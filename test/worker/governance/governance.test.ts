import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { LABEL } from '../workflows.ts';
import { eventTypes, SYS_ID } from '../workshop.ts';
import { ASSIGN, DENIED, FAILED, GovernedWorkshop, needsApproval } from './governed-workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());
const group = () => shop.outside.incidents.get(SYS_ID)?.fields.category;

describe('policy', () => {
  it('is asked about every call, with the action and its makers', async () => {
    shop.policy.decision = () => ALLOWED;
    const message = await shop.begin(LABEL, { trigger: { fields: { title: 't', number: 7, actor: 'olivia-gh' } } });
    await shop.work(message);
    expect(shop.policy.asked).toMatchObject([
      {
        fresh: false,
        request: {
          tenant: 'acme',
          source: 'github',
          writesBefore: 0,
          action: {
            tool: 'github.labels.add',
            connector: 'github',
            target: 'github:octo-org/payments#7',
            fields: { labels: ['triage'] },
            effect: 'natural',
            environment: 'dev',
            undo: false,
            makers: ['olivia'],
          },
        },
      },
    ]);
    const { commits, receipts } = await shop.now(message);
    const decided = commits.flatMap(({ events }) => events.filter(({ type }) => type === 'policy.decided'));
    expect(decided).toMatchObject([{ verdict: 'allow', policyHash: 'test', policies: ['test'] }]);
    expect(receipts).toMatchObject([{ grounds: { policyHash: 'test', policies: ['test'] } }]);
  });

  it('is asked at the time of the decision, with the facts of the trigger', async () => {
    const trigger = { fields: { title: 't', severity: '1', priority: '2' }, payload: { issue: { labels: ['sev1'] } } };
    const { approval } = await shop.upToGate(ASSIGN(), { trigger });
    shop.clock.advance(3_600_000);
    await shop.say(approval, 'ana');
    const askedAt = shop.policy.asked.map(({ request }) => request.at ?? '');
    const { steps } = await shop.finish({ tenant: 'acme', runId: approval.runId });
    const usedAt = shop.policy.asked.at(-1)?.request.at ?? '';
    expect(Date.parse(usedAt) - Date.parse(askedAt[0] ?? '')).toBeGreaterThanOrEqual(3_600_000);
    expect(steps).toMatchObject([{ governed: { request: { at: usedAt } } }]);
    expect(shop.policy.asked[0]?.request.trigger).toEqual({
      event: 'issues.opened',
      severity: '1',
      priority: '2',
      labels: ['sev1'],
    });
    expect(shop.policy.asked[0]?.request).not.toHaveProperty('before');
  });

  it('that uses the current values gets them before it allows a write, and they are recorded', async () => {
    shop.policy.usesBefore = true;
    shop.policy.decision = ({ before }) => (before?.fields.category === '' ? ALLOWED : DENIED);
    const allowed = await shop.finish(await shop.begin(ASSIGN()));
    expect(allowed).toMatchObject({
      run: { status: 'succeeded' },
      steps: [{ governed: { request: { before: { fields: { category: '' }, omitted: [] } } } }],
    });
    shop.outside.incidents.set(SYS_ID, { fields: { category: 'database' }, workNotes: [] });
    const denied = await shop.finish(await shop.begin(ASSIGN()));
    expect(denied.run).toMatchObject({ status: 'failed_terminal', error: { code: 'POLICY_DENIED' } });
    expect(shop.writes()).toHaveLength(1);
  });

  it('that uses the current values decides an edit by those that people have seen', async () => {
    shop.policy.usesBefore = true;
    const { approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana', { kind: 'edit', fields: { category: 'database' } });
    expect(shop.policy.asked.at(-1)?.request).toMatchObject({ before: { fields: { category: '' } } });
  });

  it.each([
    ['denies', DENIED],
    ['fails', FAILED],
  ])('that %s ends the step and is recorded, and nothing is sent', async (_what, decision) => {
    shop.policy.decision = () => decision;
    const message = await shop.begin(ASSIGN());
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({
      status: 'failed_terminal',
      error: { code: decision.code, message: decision.reasons[0] },
    });
    expect(now.steps).toMatchObject([{ governed: { decision: { verdict: 'deny' } } }]);
    expect(eventTypes(now)).toContain('policy.decided');
    expect(shop.outside.calls).toEqual([]);
  });
});

describe('a write that policy wants approved', () => {
  it('waits, and people see the values before and after', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
    expect(approval).toMatchObject({
      asks: 'policy',
      action: { tool: 'servicenow.incident.update', fields: { category: 'network' } },
      before: { category: '' },
      after: { category: 'network' },
      requirement: { tier: 'medium', quorum: 1 },
      grounds: { reasons: ['somebody must look at it'] },
      channel: '#approvals',
    });
    expect(shop.writes()).toEqual([]);
  });

  it('is requested with the reason if the current values cannot be read', async () => {
    shop.outside.next('GET servicenow', { status: 403 });
    const { approval } = await shop.upToGate(ASSIGN());
    expect(approval).toMatchObject({ unread: expect.stringContaining('ServiceNow refused (403)') });
    expect(approval.before).toBeUndefined();
  });

  it('is made once after the approval, and its receipt names the approval', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    expect(await shop.say(approval, 'ana')).toMatchObject({ outcome: 'approved' });
    expect((await shop.now(message)).run.status).toBe('running');
    const { run, receipts } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(shop.writes()).toHaveLength(1);
    expect(receipts).toMatchObject([{ grounds: { approvalId: approval.approvalId } }]);
    expect(shop.policy.asked.map(({ fresh }) => fresh)).toEqual([false, true]);
  });

  it('is approved once, even if the same person approves again', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana');
    expect(await shop.say(approval, 'ana')).toMatchObject({ outcome: 'already' });
    const { run } = await shop.finish(message);
    expect(await shop.say(approval, 'ana')).toMatchObject({ outcome: 'already' });
    expect(run.status).toBe('succeeded');
    expect(shop.writes()).toHaveLength(1);
  });

  it('is not made after a rejection, and the run ends for that reason', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'wrong group, says Carol' });
    const now = await shop.now(message);
    expect(now.run).toMatchObject({ status: 'failed_terminal', error: { code: 'APPROVAL_REJECTED' } });
    expect(JSON.stringify(now.commits)).not.toContain('Carol');
    expect(await shop.runs.approval('acme', message.runId, approval.approvalId)).toMatchObject({
      status: 'rejected',
      votes: [{ person: 'ana', decision: 'reject', reason: 'wrong group, says Carol' }],
    });
    expect(shop.writes()).toEqual([]);
  });

  it('pauses the run after a rejection if the workflow says so; a retry asks again', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN('onReject: pause'));
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'not now' });
    expect((await shop.now(message)).run.status).toBe('paused');
    await shop.command(message, { kind: 'retry' });
    await shop.work(message);
    const second = await shop.openApproval(message);
    expect(second.approvalId).not.toBe(approval.approvalId);
    await shop.say(second, 'ana');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });

  it('shows a late decider who decided first', async () => {
    const { approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana');
    await expect(shop.say(approval, 'ben', { kind: 'reject', reason: 'no' })).rejects.toMatchObject({
      code: 'APPROVAL_CLOSED',
      message: expect.stringMatching(/approved by ana/),
    });
  });

  it.each([
    ['someone the tenant does not know', 'mallory', 'APPROVAL_FORBIDDEN'],
    ['a member', 'chloe', 'APPROVAL_FORBIDDEN'],
    ['the person who caused it', 'olivia', 'APPROVAL_SELF'],
  ])('is not approved by %s', async (_who, person, code) => {
    const trigger = { fields: { title: 't', number: 7, actor: 'olivia-gh' } };
    const { approval } = await shop.upToGate(ASSIGN(), { trigger });
    expect(approval.makers).toEqual(['olivia']);
    await expect(shop.say(approval, person)).rejects.toMatchObject({ code });
  });

  it('needs as many people as policy says', async () => {
    shop.policy.decision = () => needsApproval({ quorum: 2 });
    const { message, approval } = await shop.upToGate(ASSIGN());
    expect(await shop.say(approval, 'ana')).toMatchObject({ outcome: 'counted' });
    expect(await shop.say(approval, 'ana', 'approve', { via: 'slack' })).toMatchObject({ outcome: 'already' });
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
    expect(await shop.say(approval, 'olivia')).toMatchObject({ outcome: 'approved' });
  });

  it('expires undecided, which is not a rejection, and cannot be approved after that', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN('approvals: { expiresSeconds: 60 }'));
    shop.clock.advance(60_000);
    await expect(shop.say(approval, 'ana')).rejects.toMatchObject({ code: 'APPROVAL_CLOSED' });
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({ error: { code: 'APPROVAL_EXPIRED' } });
    expect(shop.writes()).toEqual([]);
  });

  it('is canceled with its run', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.command(message, { kind: 'cancel' });
    expect(await shop.runs.approval('acme', message.runId, approval.approvalId)).toMatchObject({ status: 'canceled' });
    expect(shop.outbox.receiveFollows()).toMatchObject([{ approvalId: approval.approvalId }]);
    await expect(shop.say(approval, 'ana')).rejects.toMatchObject({ code: 'APPROVAL_CLOSED' });
  });

  it('continues after the approval as soon as a slot is free', async () => {
    await shop.definitions.saveSettings('acme', { caps: { maxConcurrency: 1 }, workspaces: {}, counterShards: 1 });
    const { message, approval } = await shop.upToGate(ASSIGN());
    const other = await shop.begin(LABEL);
    shop.policy.decision = () => ALLOWED;
    shop.outside.next('POST github', { status: 500 });
    shop.disturb((name, run) => (name === 'POST github' ? new Promise(() => {}) : run()));
    void shop.work(other);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await shop.say(approval, 'ana')).toMatchObject({ outcome: 'approved' });
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
    shop.disturb((_name, run) => run());
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });
});

describe('an approval is for what was approved', () => {
  it('and no longer counts after a change of policy: the approval is requested again, nothing is written', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana');
    shop.policy.decision = () => ({ ...needsApproval({ quorum: 2 }), policyHash: 'changed' });
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run.status).toBe('waiting_approval');
    expect(eventTypes(now)).toContain('approval.stale');
    expect(shop.writes()).toEqual([]);
    const second = await shop.openApproval(message);
    await shop.say(second, 'ana');
    await shop.say(second, 'ben');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(shop.writes()).toHaveLength(1);
  });

  it('and does not count if policy denies the write by then', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana');
    shop.policy.decision = () => DENIED;
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({ error: { code: 'POLICY_DENIED' } });
    expect(shop.writes()).toEqual([]);
  });

  it('and refuses the decision of a person who saw something else', async () => {
    const { approval } = await shop.upToGate(ASSIGN());
    const stale = shop.say(approval, 'ana', 'approve', { actionHash: 'what-i-saw' });
    await expect(stale).rejects.toMatchObject({ code: 'APPROVAL_STALE' });
    expect(await shop.say(approval, 'ana', 'approve', { actionHash: approval.actionHash })).toMatchObject({
      outcome: 'approved',
    });
  });

  it('and counts for all attempts of the write', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana');
    shop.outside.next('PATCH servicenow', { status: 429, retryAfterSeconds: 5 });
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(shop.writes()).toHaveLength(2);
  });

  it('and with onDrift: refuse, only if the target has not changed', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN('onDrift: refuse'));
    await shop.say(approval, 'ana');
    const incident = shop.outside.incidents.get(SYS_ID);
    if (incident) incident.fields.category = 'someone else was here';
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({ error: { code: 'DRIFTED' } });
    expect(shop.writes()).toEqual([]);
  });
});

describe('an edit', () => {
  const edit = { kind: 'edit' as const, fields: { category: 'database' } };

  it('starts the approval again: policy decides again, earlier votes are void, the editor is a maker, the change is recorded', async () => {
    shop.policy.decision = () => needsApproval({ quorum: 2 });
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'olivia');
    expect(await shop.say(approval, 'ana', edit)).toMatchObject({
      outcome: 'edited',
      approval: {
        votes: [],
        makers: ['ana'],
        edits: [
          {
            person: 'ana',
            changes: [{ field: 'category', from: 'network', to: 'database' }],
            previousHash: approval.actionHash,
          },
        ],
      },
    });
    await expect(shop.say(approval, 'ben')).rejects.toMatchObject({ code: 'APPROVAL_STALE' });
    const edited = await shop.openApproval(message);
    await expect(shop.say(edited, 'ana')).rejects.toMatchObject({ code: 'APPROVAL_SELF' });
    await shop.say(edited, 'ben');
    await shop.say(edited, 'olivia');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(group()).toBe('database');
  });

  it('does not change the message of the workflow, and the card shows that the message is older than the edit', async () => {
    const yaml = ASSIGN().replace('tool:', 'message: "{% trigger.title %} goes to Network", tool:');
    const { message, approval } = await shop.upToGate(yaml);
    expect(approval.message).toMatch(/^.+ goes to Network$/);
    await shop.say(approval, 'ana', edit);
    const edited = await shop.openApproval(message);
    expect(edited).toMatchObject({ message: approval.message, edits: [{ person: 'ana' }] });
    await shop.say(edited, 'ben');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });

  it('cannot add a field that was not proposed', async () => {
    const { approval } = await shop.upToGate(ASSIGN());
    await expect(shop.say(approval, 'ana', { kind: 'edit', fields: { state: '7' } })).rejects.toMatchObject({
      code: 'INPUT_INVALID',
      message: expect.stringContaining('category'),
    });
  });

  it('is refused if too few people could approve it after that', async () => {
    shop.policy.decision = () => needsApproval({ quorum: 3 });
    const { approval } = await shop.upToGate(ASSIGN());
    await expect(shop.say(approval, 'ana', edit)).rejects.toMatchObject({ code: 'INPUT_INVALID' });
  });

  it('that policy denies is refused, and the approval does not change', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN());
    shop.policy.decision = ({ action }) => (action.fields.category === 'database' ? DENIED : needsApproval());
    await expect(shop.say(approval, 'ana', edit)).rejects.toMatchObject({ code: 'POLICY_DENIED' });
    await shop.say(approval, 'ben');
    await shop.finish(message);
    expect(group()).toBe('network');
  });

  it.each([
    ['nothing', { category: 'network' }],
    ['the shape', { category: { deep: true } }],
  ])('that changes %s is refused', async (_what, fields) => {
    const { approval } = await shop.upToGate(ASSIGN());
    await expect(shop.say(approval, 'ana', { kind: 'edit', fields })).rejects.toMatchObject({ code: 'INPUT_INVALID' });
  });
});

it('people and policy see the thread of a message; it cannot be edited, nor change after an approval', async () => {
  const post = `
name: post
steps:
  - { id: post, tool: slack.message.post, with: { channel: "#incidents", text: hello, threadTs: "1.0" } }
`;
  const { message, approval } = await shop.upToGate(post);
  expect(approval.action?.fields).toEqual({ text: 'hello', threadTs: '1.0' });
  const elsewhere = shop.say(approval, 'ana', { kind: 'edit', fields: { threadTs: '2.0' } });
  await expect(elsewhere).rejects.toMatchObject({ code: 'INPUT_INVALID' });
  await shop.say(approval, 'ana');
  const load = shop.runs.load.bind(shop.runs);
  vi.spyOn(shop.runs, 'load').mockImplementation(async (...asked) => {
    const loaded = await load(...asked);
    const steps = loaded?.steps.map((step) =>
      JSON.parse(JSON.stringify(step).replaceAll('"threadTs":"1.0"', '"threadTs":"2.0"')),
    );
    return loaded && { ...loaded, steps: steps ?? [] };
  });
  await shop.work(message);
  vi.restoreAllMocks();
  expect(eventTypes(await shop.now(message))).toContain('approval.stale');
  expect(shop.writes()).toEqual([]);
});

describe('the rule of two applies independent of policy', () => {
  it.each([['a write with a high blast radius', 'blastRadius: high']])('is %s', async (_what, setting) => {
    shop.policy.decision = () => ALLOWED;
    const { approval } = await shop.upToGate(ASSIGN(setting));
    expect(approval).toMatchObject({ asks: 'always_two', requirement: { quorum: 2, tier: 'high' } });
  });
});

describe('validation modes require approvals of writes that policy allows', () => {
  const TWO = (mode: string, phases: [string, string] = ['main', 'main'], more = '') => `
name: two
validation: { mode: ${mode}, autoApproveThreshold: 0.8 }
steps:
  - { id: first, phase: ${phases[0]}, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { state: "2" } }${more} }
  - { id: second, phase: ${phases[1]}, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: done } }
`;
  /** Approves every request and returns the steps that needed one. */
  async function gated(yaml: string): Promise<string[]> {
    shop.policy.decision = () => ALLOWED;
    const message = await shop.begin(yaml);
    await shop.work(message);
    const steps: string[] = [];
    while ((await shop.now(message)).run.status === 'waiting_approval') {
      const approval = await shop.openApproval(message);
      steps.push(approval.stepId);
      await shop.say(approval, 'ana');
      await shop.work(message);
    }
    expect((await shop.now(message)).run.status).toBe('succeeded');
    return steps;
  }
  const sure = ', confidence: "{% 0.9 %}"';
  const unsure = ', confidence: "{% 0.5 %}"';

  it.each([
    ['per_step', TWO('per_step'), ['first', 'second']],
    ['per_step, sure of the first', TWO('per_step', ['main', 'main'], sure), ['second']],
    ['per_step, not sure enough', TWO('per_step', ['main', 'main'], unsure), ['first', 'second']],
    ['per_phase, one phase', TWO('per_phase'), ['first']],
    ['per_phase, two phases', TWO('per_phase', ['prechecks', 'main']), ['first', 'second']],
    ['critical_only, sure of one', TWO('critical_only', ['main', 'main'], sure), ['second']],
    [
      'critical_only, and it is critical',
      TWO('critical_only', ['main', 'main'], `${sure}, critical: true`),
      ['first', 'second'],
    ],
    ['final_only', TWO('final_only'), ['second']],
    [
      "per_step, sure enough for the workflow but not for the step's own threshold",
      TWO('per_step', ['main', 'main'], `${sure}, autoApproveThreshold: 0.95`),
      ['first', 'second'],
    ],
    [
      "critical_only, sure enough for the step's own threshold alone",
      TWO('critical_only', ['main', 'main'], `${unsure}, autoApproveThreshold: 0.4`),
      ['second'],
    ],
  ])('%s', async (_mode, yaml, expected) => {
    expect(await gated(yaml)).toEqual(expected);
  });

  it('per_step is the default in prod, where nothing is approved automatically', async () => {
    Object.assign(shop.worker, { environment: 'prod' });
    expect(await gated(LABEL)).toEqual(['label']);
    expect(await gated(TWO('per_step', ['main', 'main'], sure))).toEqual(['first', 'second']);
  });
});

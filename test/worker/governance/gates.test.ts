import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Approval } from '../../../lambdas/run/approval.ts';
import type { StepMessage } from '../../../lambdas/run-changes/step-queue.ts';
import { BEN } from '../../approval/people.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { wholeRun } from '../../fakes/whole-run.ts';
import { eventTypes, ISSUE, SYS_ID } from '../workshop.ts';
import { ASSIGN, DENIED, GovernedWorkshop, needsApproval } from './governed-workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const allowAll = () => {
  shop.policy.decision = () => ALLOWED;
};
const labels = () => shop.outside.issueLabels.get(ISSUE);
const incident = () => {
  const found = shop.outside.incidents.get(SYS_ID);
  if (!found) throw new Error('the incident is gone');
  return found;
};
const approvalsOf = async ({ tenant, runId }: StepMessage): Promise<Approval[]> =>
  (await wholeRun(shop.runs, tenant, runId))?.approvals ?? [];
const staleBecause = async (message: StepMessage) =>
  (await shop.now(message)).commits.flatMap(({ events }) =>
    events.flatMap((event) => (event.type === 'approval.stale' ? [event.because] : [])),
  );

describe('the undo of a write', () => {
  const UNDONE = (levels: string) => `
name: undone
onFailure: rollback
steps:
  - { id: label, ${levels}, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
  - { id: gone, tool: servicenow.incident.update, with: { sysId: "${'f'.repeat(32)}", fields: { state: "6" } } }
`;

  /** The step fails, and the next worker begins the rollback. */
  async function upToRollback(message: StepMessage): Promise<void> {
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('rolling_back');
    await shop.work(message);
  }

  it('with high blast radius needs two people, like the write itself', async () => {
    allowAll();
    const { message, approval } = await shop.upToGate(UNDONE('blastRadius: high'));
    await shop.say(approval, 'ana');
    await shop.say(approval, 'olivia');
    await upToRollback(message);
    const undo = await shop.openApproval(message);
    expect(undo).toMatchObject({
      stepId: 'undo_label',
      asks: 'always_two',
      requirement: { tier: 'high', quorum: 2 },
      action: { undo: true, blastRadius: 'high' },
    });
    await shop.say(undo, 'ana');
    await shop.work(message);
    expect(labels()).toContain('triage');
    await shop.say(undo, 'olivia');
    expect((await shop.finish(message)).run.compensation).toMatchObject([{ step: 'label', outcome: 'reversed' }]);
    expect(labels()).not.toContain('triage');
  });

  it('is decided by policy with the risk that its workflow sets', async () => {
    allowAll();
    await shop.finish(await shop.begin(UNDONE('risk: high, blastRadius: medium')));
    const undo = shop.policy.asked.find(({ request }) => request.action.undo);
    expect(undo?.request.action).toMatchObject({ risk: 'high', blastRadius: 'medium', destructive: false });
  });

  it('expects the values that the write left, not the values that people were shown', async () => {
    shop.policy.decision = ({ action }) => (action.undo ? needsApproval() : ALLOWED);
    const assigned = `
name: assigned
onFailure: rollback
onDrift: refuse
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
  - { id: wait, tool: wait, with: { seconds: 10 } }
  - { id: gone, tool: servicenow.incident.update, with: { sysId: "${'f'.repeat(32)}", fields: { state: "6" } } }
`;
    const message = await shop.begin(assigned);
    await shop.work(message);
    incident().fields.category = 'a third party';
    shop.clock.advance(10_000);
    await upToRollback(message);
    await shop.say(await shop.openApproval(message), 'ana');
    expect((await shop.finish(message)).run.compensation).toMatchObject([{ step: 'assign', outcome: 'drifted' }]);
    expect(incident().fields.category).toBe('a third party');
  });
});

describe('per_phase', () => {
  const ONE = `
name: one
validation: { mode: per_phase }
approvals: { expiresSeconds: 60 }
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
`;
  it('asks again for a step whose own approval has become stale', async () => {
    allowAll();
    const { message, approval } = await shop.upToGate(ONE);
    await shop.say(approval, 'ana');
    shop.policy.decision = () => ({ ...ALLOWED, policyHash: 'another' });
    await shop.work(message);
    expect(await staleBecause(message)).toEqual(['changed']);
    expect((await shop.openApproval(message)).approvalId).not.toBe(approval.approvalId);
    expect(shop.writes()).toEqual([]);
  });

  it('asks again for a step whose own approval has expired', async () => {
    allowAll();
    const { message, approval } = await shop.upToGate(ONE);
    await shop.say(approval, 'ana');
    shop.clock.advance(60_000);
    await shop.work(message);
    expect(await staleBecause(message)).toEqual(['expired']);
    expect((await shop.openApproval(message)).approvalId).not.toBe(approval.approvalId);
    expect(shop.writes()).toEqual([]);
  });
});

it.each([
  ['as the workflow says', 'approvals: { slaSeconds: 600, expiresSeconds: 900 }', 600],
  ['at half its time, if it is soon over and the workflow says nothing', 'approvals: { expiresSeconds: 900 }', 450],
  ['after half an hour otherwise', '', 1_800],
])('others are alerted about an approval %s', async (_when, settings, seconds) => {
  shop.policy.decision = () => needsApproval();
  const { approval } = await shop.upToGate(ASSIGN(settings));
  expect(Date.parse(approval.slaAt) - Date.parse(approval.requestedAt)).toBe(seconds * 1000);
});

describe('a write that once needed an approval', () => {
  const edit = { kind: 'edit' as const, fields: { category: 'database' } };

  it('and rejected needs an approval again on retry, even if policy allows the edited write by then', async () => {
    shop.policy.decision = ({ action }) =>
      action.fields.category === 'network' ? needsApproval({ quorum: 2, groups: [['network']] }) : ALLOWED;
    for (const id of ['bo', 'bea']) await shop.definitions.savePerson('acme', { ...BEN, id });
    const { message, approval } = await shop.upToGate(ASSIGN('onReject: pause'));
    await shop.say(approval, 'bo', edit);
    await shop.say(await shop.openApproval(message), 'ben', { kind: 'reject', reason: 'never' });
    await shop.command(message, { kind: 'retry' });
    await shop.work(message);
    expect(await shop.openApproval(message)).toMatchObject({
      requirement: { quorum: 2, groups: [['network']] },
      makers: ['bo', 'oscar'],
      action: { fields: { category: 'database' } },
    });
    expect(shop.writes()).toEqual([]);
  });

  it('and that expired needs an approval again on retry, even if policy allows it by then', async () => {
    const { message } = await shop.upToGate(ASSIGN('onFailure: pause\napprovals: { expiresSeconds: 60 }'));
    shop.clock.advance(60_000);
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('paused');
    allowAll();
    await shop.command(message, { kind: 'retry' });
    await shop.work(message);
    expect(await shop.openApproval(message)).toMatchObject({ asks: 'policy', requirement: { quorum: 1 } });
    expect(shop.writes()).toEqual([]);
  });

  it('needs no less than before when its approval is stale, even if policy requires less by then', async () => {
    shop.policy.decision = () => needsApproval({ tier: 'high', quorum: 2 });
    const { message, approval } = await shop.upToGate(ASSIGN());
    await shop.say(approval, 'ana');
    await shop.say(approval, 'olivia');
    shop.policy.decision = () => ({ ...needsApproval({ tier: 'low' }), policyHash: 'milder' });
    await shop.work(message);
    expect((await shop.openApproval(message)).requirement).toMatchObject({ tier: 'high', quorum: 2 });
    expect(shop.writes()).toEqual([]);
  });

  it('still needs an approval after policy has denied it in between', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN('onFailure: pause\nonReject: pause'));
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'never' });
    shop.policy.decision = () => DENIED;
    await shop.command(message, { kind: 'retry' });
    await shop.work(message);
    allowAll();
    await shop.command(message, { kind: 'retry' });
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('waiting_approval');
    expect(shop.writes()).toEqual([]);
  });
});

it('an approved write whose response was lost needs no second approval when an operator retries it and the probe finds it', async () => {
  const note = `
name: note
steps:
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: hello } }
`;
  const { message, approval } = await shop.upToGate(note);
  await shop.say(approval, 'ana');
  shop.outside.next('PATCH servicenow', 'lost_answer');
  await shop.work(message);
  await shop.command(message, { kind: 'retry' });
  const { run, receipts } = await shop.finish(message);
  expect(run.status).toBe('succeeded');
  expect(receipts).toMatchObject([{ recovered: true, grounds: { approvalId: approval.approvalId } }]);
  expect(incident().workNotes).toHaveLength(1);
});

describe('an approval counts only if its voters may still approve when it is used', () => {
  it.each([
    ['turns out to have made the write', { ...BEN, identities: ['github:octocat'] }],
    ['may not decide any more', { ...BEN, role: 'member' as const }],
    ['is not in the group any more', { ...BEN, groups: [] }],
  ])('so people are asked again if one of them %s', async (_what, changed) => {
    shop.policy.decision = () => needsApproval({ groups: [['network']] });
    const trigger = { fields: { title: 't', number: 7, actor: 'octocat' } };
    const { message, approval } = await shop.upToGate(ASSIGN(), { trigger });
    expect(await shop.say(approval, 'ben')).toMatchObject({ outcome: 'approved' });
    await shop.definitions.savePerson('acme', changed);
    await shop.work(message);
    expect(await staleBecause(message)).toEqual(['voters']);
    expect((await shop.openApproval(message)).approvalId).not.toBe(approval.approvalId);
    expect(shop.writes()).toEqual([]);
  });
});

describe('final_only', () => {
  const BEHIND = `
name: behind
validation: { mode: final_only }
steps:
  - { id: last, needs: [first], tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: done } }
  - { id: first, needs: [], tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { state: "2" } } }
`;

  it('requests an approval of the write that follows all others, independent of its position in the file', async () => {
    allowAll();
    const { message, approval } = await shop.upToGate(BEHIND);
    expect(approval.stepId).toBe('last');
    await shop.say(approval, 'ana');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(await approvalsOf(message)).toHaveLength(1);
  });
});

describe('onDrift: refuse', () => {
  const GUARDED = (retry = '') => `
name: guarded
onDrift: refuse
steps:
  - { id: assign, ${retry} tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
`;

  it('requests an approval only after the current values are read, and writes only if they have not changed', async () => {
    shop.outside.next('GET servicenow', { status: 503 });
    const message = await shop.begin(GUARDED());
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('failed_retryable');
    expect(await approvalsOf(message)).toEqual([]);
    shop.clock.advance(60_000);
    await shop.work(message);
    const approval = await shop.openApproval(message);
    expect(approval.before).toEqual({ category: '' });
    incident().fields.category = 'a third party';
    await shop.say(approval, 'ana');
    expect((await shop.finish(message)).run).toMatchObject({ error: { code: 'DRIFTED' } });
    expect(shop.writes()).toEqual([]);
  });

  it('stops reading after the attempts of the step, and says why no approval was requested', async () => {
    shop.outside.next('GET servicenow', { status: 503 }, { status: 503 }, { status: 503 });
    const message = await shop.begin(GUARDED('retry: { attempts: 2 },'));
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'TARGET_REFUSED', message: expect.stringMatching(/could not be read.*nobody was asked/) },
    });
    expect(shop.outside.calls).toHaveLength(2);
    expect(await approvalsOf(message)).toEqual([]);
  });

  it('does not read again after an error that is not retryable', async () => {
    shop.outside.next('GET servicenow', { status: 404 });
    const message = await shop.begin(GUARDED());
    await shop.work(message);
    expect((await shop.now(message)).run).toMatchObject({ status: 'failed_terminal' });
    expect(shop.outside.calls).toHaveLength(1);
  });
});

describe('a run that a failed step has paused', () => {
  it('is not resumed, because it would pause again: the error says what to do', async () => {
    const { message, approval } = await shop.upToGate(ASSIGN('onReject: pause'));
    await shop.say(approval, 'ana', { kind: 'reject', reason: 'not now' });
    const before = (await shop.now(message)).run.seq;
    await expect(shop.command(message, { kind: 'resume' })).rejects.toMatchObject({
      code: 'RUN_RESUME_FAILED',
      message: expect.stringMatching(/assign has failed \(APPROVAL_REJECTED\).*retry.*roll back.*cancel/),
    });
    expect((await shop.now(message)).run).toMatchObject({ status: 'paused', seq: before });
  });
});

it('a comment that people edited is written exactly as they approved it', async () => {
  const body = 'Ask "{% trigger.title %}", not @octocat.';
  const { message, approval } = await shop.upToGate(
    `name: say\nsteps:\n  - { id: say, tool: github.comment.create, with: { owner: octo-org, repo: payments, number: 7, body: ${JSON.stringify(body)} } }\n`,
  );
  const shown = String(approval.action?.fields.body);
  expect(shown).toContain('not @&#8203;octocat.');
  const edited = `${shown} **Now.**`;
  await shop.say(approval, 'olivia', { kind: 'edit', fields: { body: edited } });
  const again = await shop.openApproval(message);
  expect(again.action?.fields).toEqual({ body: edited });
  await shop.say(again, 'ana');
  expect((await shop.finish(message)).run.status).toBe('succeeded');
  const sent = shop.outside.callsOf('POST github').map(({ body }) => (body as { body: string }).body);
  expect(sent).toEqual([expect.stringContaining(`${edited}\n\n<!-- countersign:`)]);
});

describe('a destructive write', () => {
  const DELETING = (retry = '') => `
name: deleting
steps:
  - { id: say, tool: github.comment.create, with: { owner: octo-org, repo: payments, number: 7, body: hello } }
  - { id: gone, ${retry} tool: github.comment.delete, with: { owner: octo-org, repo: payments, commentId: "{% steps.say.output.commentId %}" } }
`;

  it.each([
    ['once', '', 1],
    ['as often as the workflow says', 'retry: { attempts: 2 },', 2],
  ])('is tried %s', async (_often, retry, times) => {
    allowAll();
    const { message, approval } = await shop.upToGate(DELETING(retry));
    await shop.say(approval, 'ana');
    await shop.say(approval, 'olivia');
    const refused = { status: 429, retryAfterSeconds: 1 };
    shop.outside.next('DELETE github', refused, refused, refused);
    expect((await shop.finish(message)).run).toMatchObject({ error: { code: 'RETRIES_EXHAUSTED' } });
    expect(shop.writes().filter(({ name }) => name === 'DELETE github')).toHaveLength(times);
  });
});

describe('the text of an approval', () => {
  const FIELDS = 40;
  const HEBREW_ALEF = 0x5d0;
  const HEBREW_LETTERS = 27;
  /** Looks random, is the same every time, and no two fields are alike. */
  const written = (letters: number) => {
    let drawn = letters;
    const letter = () => {
      drawn = (drawn * 48_271) % 2_147_483_647;
      return String.fromCodePoint(HEBREW_ALEF + (drawn % HEBREW_LETTERS));
    };
    const text = () => Array.from({ length: letters }, letter).join('');
    return Object.fromEntries(Array.from({ length: FIELDS }, (_, index) => [`u_field_${index}`, text()]));
  };
  const BIG = JSON.stringify({
    name: 'big',
    steps: [
      {
        id: 'fill',
        tool: 'servicenow.incident.update',
        with: {
          sysId: SYS_ID,
          fields: Object.fromEntries(Object.keys(written(1)).map((name) => [name, `{% trigger.written.${name} %}`])),
        },
      },
    ],
  });
  const withFields = (letters: number) => ({
    trigger: { fields: { title: 't', number: 7, written: written(letters) } },
  });

  it('may have 40 fields of 3,000 Hebrew letters, before and after', async () => {
    Object.assign(incident().fields, written(2_900));
    const { message, approval } = await shop.upToGate(BIG, withFields(3_000));
    expect(approval).toMatchObject({ before: written(2_900), after: written(3_000) });
    await shop.say(approval, 'ana');
    expect((await shop.finish(message)).run.status).toBe('succeeded');
  });

  it('that is too large fails the step with both sizes, before anybody is asked', async () => {
    const message = await shop.begin(BIG, withFields(7_000));
    await shop.work(message);
    const now = await shop.now(message);
    expect(now.run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'INPUT_INVALID', message: expect.stringMatching(/56\d{4} bytes .* limit is 491520/) },
    });
    expect(eventTypes(now)).not.toContain('approval.requested');
  });
});

describe('the approvers of a step', () => {
  const APPROVED_BY = (approvers: string, more = '') => `
name: approved
steps:
  - id: label
    ${more}approvers: ${approvers}
    tool: github.labels.add
    with: { owner: octo-org, repo: payments, number: 7, labels: [triage] }
`;

  it('must approve a write that policy allows, and the evidence says why', async () => {
    allowAll();
    const { message, approval } = await shop.upToGate(APPROVED_BY('{ groups: [platform], quorum: 2, tier: medium }'));
    expect(approval).toMatchObject({
      asks: 'approvers',
      requirement: { tier: 'medium', quorum: 2, groups: [['platform']] },
    });
    expect(labels()).toEqual(['bug']);
    const requested = (await shop.now(message)).commits.flatMap(({ events }) => events).at(-2);
    expect(requested).toMatchObject({
      type: 'approval.requested',
      asks: 'approvers',
      groups: [['platform']],
      quorum: 2,
    });
  });

  it('add to what policy requires, and remove nothing', async () => {
    shop.policy.decision = () => needsApproval({ tier: 'high', quorum: 1, groups: [['dba']] });
    const { approval } = await shop.upToGate(APPROVED_BY('{ groups: [platform], quorum: 2, tier: low }'));
    expect(approval).toMatchObject({
      asks: 'policy',
      requirement: { tier: 'high', quorum: 2, groups: [['dba'], ['platform']] },
    });
  });

  it('need the tier of the write if they name none', async () => {
    allowAll();
    const { approval } = await shop.upToGate(APPROVED_BY('{}', 'risk: high\n    '));
    expect(approval.requirement).toEqual({ tier: 'high', quorum: 1, groups: [] });
  });
});

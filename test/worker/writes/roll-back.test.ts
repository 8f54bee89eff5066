import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { DENIED, GovernedWorkshop, needsApproval } from '../governance/governed-workshop.ts';
import { ISSUE, SYS_ID, statuses } from '../workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.policy.decision = () => ALLOWED;
});
afterEach(() => vi.unstubAllGlobals());
const state = () => shop.outside.incidents.get(SYS_ID)?.fields;
const labels = () => shop.outside.issueLabels.get(ISSUE);

/** Two writes that can be undone, one that cannot, and one that fails. */
const FAILING = (settings = 'onFailure: rollback', rollback = 'none') => `
name: failing
${settings}
steps:
  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }
  - { id: note, tool: servicenow.incident.add_work_note, with: { sysId: "${SYS_ID}", note: "in progress" } }
  - { id: label, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }
  - { id: gone, rollback: ${rollback}, tool: servicenow.incident.update, with: { sysId: "${'f'.repeat(32)}", fields: { state: "6" } } }
`;

describe('a run whose write fails', () => {
  it.each([
    ['its workflow', FAILING()],
    ['the step', FAILING('', 'auto')],
  ])('undoes its writes, newest first, if %s says so', async (_who, yaml) => {
    const message = await shop.begin(yaml);
    const now = await shop.finish(message);
    expect(statuses(now).slice(-2)).toEqual(['rolling_back', 'failed_terminal']);
    expect(now.run).toMatchObject({
      error: { code: 'TARGET_REFUSED' },
      compensation: [
        { step: 'label', outcome: 'reversed' },
        { step: 'note', outcome: 'irreversible' },
        { step: 'assign', outcome: 'reversed' },
      ],
    });
    expect(state()).toMatchObject({ category: '' });
    expect(labels()).toEqual(['bug']);
    expect(now.steps.map(({ id, status }) => `${id} ${status}`)).toEqual([
      'assign rolled_back',
      'note succeeded',
      'label rolled_back',
      'gone failed_terminal',
      'undo_assign succeeded',
      'undo_label succeeded',
    ]);
  });

  it('treats each undo like any write: policy, intent, receipt', async () => {
    const message = await shop.begin(FAILING());
    const { receipts } = await shop.finish(message);
    const undos = shop.policy.asked
      .filter(({ request }) => request.action.undo)
      .map(({ request }) => request.action.tool);
    expect(undos).toEqual(['github.labels.remove', 'servicenow.incident.update']);
    const outcomes = Object.fromEntries(receipts.map(({ stepId, outcome }) => [stepId, outcome]));
    expect(outcomes).toMatchObject({
      assign: 'reversed',
      label: 'reversed',
      undo_assign: 'succeeded',
      undo_label: 'succeeded',
    });
  });

  it('does not undo a value that somebody changed since, and undoes the rest', async () => {
    const message = await shop.begin(FAILING());
    shop.disturb((name, run) => {
      const incident = state();
      if (name === 'DELETE github' && incident) incident.category = 'a third party';
      return run();
    });
    const { run } = await shop.finish(message);
    expect(run.compensation).toMatchObject([
      { step: 'label', outcome: 'reversed' },
      { step: 'note', outcome: 'irreversible' },
      { step: 'assign', outcome: 'drifted' },
    ]);
    expect(state()).toMatchObject({ category: 'a third party' });
    expect(labels()).toEqual(['bug']);
  });

  it('skips an undo that policy denies, and continues with the next', async () => {
    shop.policy.decision = ({ action }) => (action.undo && action.connector === 'github' ? DENIED : ALLOWED);
    const { run } = await shop.finish(await shop.begin(FAILING()));
    expect(run.compensation).toMatchObject([
      { step: 'label', outcome: 'refused', reason: 'not on my watch' },
      { step: 'note' },
      { step: 'assign', outcome: 'reversed' },
    ]);
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('requests an approval for an undo where policy requires it, and stays in rolling_back meanwhile', async () => {
    shop.policy.decision = ({ action }) => (action.undo ? needsApproval() : ALLOWED);
    const message = await shop.begin(FAILING());
    for (const step of ['undo_label', 'undo_assign']) {
      while ((await shop.now(message)).run.status !== 'rolling_back') await shop.work(message);
      await shop.work(message);
      expect((await shop.now(message)).run.status).toBe('rolling_back');
      const approval = await shop.openApproval(message);
      expect(approval).toMatchObject({ stepId: step, action: { undo: true } });
      await shop.say(approval, 'ana');
      await shop.work(message);
    }
    const { run } = await shop.finish(message);
    expect(run.status).toBe('failed_terminal');
    expect(state()).toMatchObject({ category: '' });
  });

  it('needs a human when the outcome of an undo is unknown', async () => {
    const message = await shop.begin(FAILING());
    shop.disturb((name, run) => {
      if (name === 'DELETE github') shop.outside.next('GET github', ...Array(9).fill({ status: 503 }));
      return run();
    });
    shop.outside.next('DELETE github', 'lost_answer');
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'needs_human', error: { code: 'OUTCOME_UNKNOWN' } });
    expect(run.compensation?.[0]).toMatchObject({ step: 'label', outcome: 'unknown' });
    expect(state()).toMatchObject({ category: '' });
  });

  it('frees the keys of the writes that it undid: another run makes the same write again', async () => {
    await shop.finish(await shop.begin(FAILING()));
    const again = await shop.begin(
      FAILING()
        .replace('failing', 'again')
        .replace(/ {2}- { id: gone.*\n/, ''),
    );
    const { run } = await shop.finish(again);
    expect(run.status).toBe('succeeded');
    expect(state()).toMatchObject({ category: 'network' });
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('does not undo a write that another run had made first', async () => {
    const first = await shop.finish(
      await shop.begin(
        FAILING('')
          .replace('failing', 'first')
          .replace(/ {2}- { id: gone.*\n/, ''),
      ),
    );
    expect(first.run.status).toBe('succeeded');
    const { run } = await shop.finish(await shop.begin(FAILING()));
    expect(run.compensation?.every(({ outcome }) => outcome === 'irreversible')).toBe(true);
    expect(state()).toMatchObject({ category: 'network' });
  });
});

describe('an operator’s rollback', () => {
  const WAITING = FAILING('').replace(/ {2}- { id: gone.*\n/, '  - { id: gate, tool: approval }\n');

  it('undoes every write and ends the run as canceled', async () => {
    const { message, approval } = await shop.upToGate(WAITING);
    await shop.command(message, { kind: 'rollback', reason: 'changed our minds' });
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'canceled', rollback: { actor: 'oscar' } });
    expect(state()).toMatchObject({ category: '' });
    expect(labels()).toEqual(['bug']);
    expect(await shop.runs.approval('acme', message.runId, approval.approvalId)).toMatchObject({ status: 'canceled' });
  });

  it('works on a run that a failure paused', async () => {
    const message = await shop.begin(FAILING('onFailure: pause'));
    await shop.work(message);
    expect((await shop.now(message)).run.status).toBe('paused');
    await shop.command(message, { kind: 'rollback' });
    const { run } = await shop.finish(message);
    expect(run.status).toBe('canceled');
    expect(state()).toMatchObject({ category: '' });
  });

  it('can be canceled: writes that are not undone yet stay, and the log says so', async () => {
    shop.policy.decision = ({ action }) => (action.undo ? needsApproval() : ALLOWED);
    const { message } = await shop.upToGate(WAITING);
    await shop.command(message, { kind: 'rollback' });
    await shop.work(message);
    await shop.command(message, { kind: 'cancel' });
    const { run } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'canceled' });
    expect(run.compensation?.map(({ outcome }) => outcome)).toEqual(['kept', 'kept', 'kept']);
    expect(state()).toMatchObject({ category: 'network' });
  });
});

it('a canceled run says which of its writes stay', async () => {
  const { message } = await shop.upToGate(
    FAILING('').replace(/ {2}- { id: gone.*\n/, '  - { id: gate, tool: approval }\n'),
  );
  await shop.command(message, { kind: 'cancel' });
  const { run } = await shop.now(message);
  expect(run.compensation).toMatchObject([
    { step: 'label', outcome: 'kept' },
    { step: 'note', outcome: 'kept' },
    { step: 'assign', outcome: 'kept' },
  ]);
});

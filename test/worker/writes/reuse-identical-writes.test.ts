import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { GovernedWorkshop, needsApproval } from '../governance/governed-workshop.ts';
import { ISSUE, SYS_ID } from '../workshop.ts';

/** Two runs that want the identical write share one; then the run that made it does not undo it. */

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  vi.stubGlobal('fetch', shop.outside.fetch);
  shop.policy.decision = () => ALLOWED;
});
afterEach(() => vi.unstubAllGlobals());

const labels = () => shop.outside.issueLabels.get(ISSUE);
const label = (id: string) =>
  `  - { id: ${id}, tool: github.labels.add, with: { owner: octo-org, repo: payments, number: 7, labels: [triage] } }\n`;
const ASSIGN = `  - { id: assign, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { category: network } } }\n`;
const PAUSE = '  - { id: pause, tool: wait, with: { seconds: 60 } }\n';
const GONE = `  - { id: gone, tool: servicenow.incident.update, with: { sysId: "${'f'.repeat(32)}", fields: { state: "6" } } }\n`;
/** Labels, waits, then fails and removes the label. */
const MAKER = `name: maker\nonFailure: rollback\nsteps:\n${label('label')}${PAUSE}${GONE}`;
const OTHER = `name: other\nsteps:\n${label('mine')}`;

/** Works until a run is rolling back, and a step further. */
async function untilUndoing(message: Awaited<ReturnType<GovernedWorkshop['begin']>>): Promise<void> {
  while ((await shop.now(message)).run.status !== 'rolling_back') await shop.work(message);
  await shop.work(message);
}

describe('a write that another run reuses', () => {
  it('stays when the run that made it rolls back, and the log names the other run', async () => {
    const maker = await shop.begin(MAKER);
    await shop.work(maker);
    const other = await shop.begin(OTHER);
    await shop.work(other);
    expect((await shop.now(other)).run.status).toBe('succeeded');
    const { run } = await shop.finish(maker);
    expect(run.compensation).toMatchObject([
      { step: 'label', outcome: 'irreversible', reason: expect.stringContaining(other.runId) },
    ]);
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('stays even if the undo was already approved', async () => {
    shop.policy.decision = ({ action }) => (action.undo ? needsApproval() : ALLOWED);
    const maker = await shop.begin(MAKER.replace(PAUSE, ''));
    await untilUndoing(maker);
    const approval = await shop.openApproval(maker);
    const other = await shop.begin(OTHER);
    await shop.work(other);
    await shop.say(approval, 'ana');
    const { run } = await shop.finish(maker);
    expect(run.compensation).toMatchObject([{ step: 'label', reason: expect.stringContaining(other.runId) }]);
    expect(labels()).toEqual(['bug', 'triage']);
  });

  it('is marked in the commit that reuses it: an undo that began in between makes that run wait', async () => {
    const maker = await shop.begin(MAKER.replace(PAUSE, ''));
    const other = await shop.begin(OTHER);
    await shop.work(maker);
    let before = true;
    shop.disturb(async (name, run) => {
      // The other run has read the receipt, and its maker begins the undo before it commits.
      if (name === 'commit' && before && (await shop.now(other)).run.seq === 1) {
        before = false;
        shop.outside.next('DELETE github', 'lost_answer');
        await shop.work(maker);
      }
      return run();
    });
    await shop.work(other);
    shop.queue.send(other);
    shop.queue.send(maker);
    expect((await shop.finish(maker)).run.compensation).toMatchObject([{ step: 'label', outcome: 'reversed' }]);
    expect((await shop.finish(other)).run.status).toBe('succeeded');
    // Undone by the one run, and made again by the other.
    expect(labels()).toEqual(['bug', 'triage']);
  });
});

describe('an undo of unknown outcome', () => {
  async function canceledAmidUndo() {
    const maker = await shop.begin(MAKER.replace(PAUSE, ''));
    shop.outside.next('DELETE github', 'lost_answer');
    await untilUndoing(maker);
    await shop.command(maker, { kind: 'cancel' });
    return shop.finish(maker);
  }

  it('is not logged as `kept`', async () => {
    const { run } = await canceledAmidUndo();
    expect(run).toMatchObject({ status: 'canceled', compensation: [{ step: 'label', outcome: 'unknown' }] });
    expect(labels()).toEqual(['bug']);
  });

  it('prevents that runs reuse the write', async () => {
    await canceledAmidUndo();
    const other = await shop.begin(OTHER);
    await shop.work(other);
    const { run, steps } = await shop.now(other);
    expect(run.status).toBe('failed_retryable');
    expect(steps).toMatchObject([{ error: { message: expect.stringContaining('undoing the identical write') } }]);
  });

  it('does not prevent reuse once the undo has certainly failed', async () => {
    const maker = await shop.begin(MAKER.replace(PAUSE, ''));
    shop.outside.next('DELETE github', { status: 403 });
    expect((await shop.finish(maker)).run.compensation).toMatchObject([{ step: 'label', outcome: 'refused' }]);
    const other = await shop.begin(OTHER);
    await shop.work(other);
    expect((await shop.now(other)).run.status).toBe('succeeded');
    expect(shop.outside.callsOf('POST github')).toHaveLength(1);
  });
});

describe('a run that is sealed late', () => {
  const made = (id: string) => shop.begin(`name: again\nsteps:\n${label(id)}`);

  it('gets its evidence even if another run has made the write that it failed to make', async () => {
    const first = await shop.begin(OTHER);
    shop.outside.next('POST github', { status: 422 });
    await shop.work(first);
    await shop.work(await made('again'));
    expect(await shop.finish(first)).toMatchObject({ run: { status: 'failed_terminal' }, sealed: true });
  });

  it('gets its evidence even if another run has made the write that it undid', async () => {
    const first = await shop.begin(MAKER.replace(PAUSE, ''));
    while ((await shop.now(first)).run.status !== 'failed_terminal') await shop.work(first);
    await shop.work(await made('again'));
    expect(labels()).toEqual(['bug', 'triage']);
    expect(await shop.finish(first)).toMatchObject({ run: { status: 'failed_terminal' }, sealed: true });
  });
});

describe('a write that two steps of one run make', () => {
  it('is undone once, for the step that made it', async () => {
    const yaml = `name: twice\nonFailure: rollback\nsteps:\n${label('first')}${ASSIGN}${label('again')}${GONE}`;
    const { run, steps } = await shop.finish(await shop.begin(yaml));
    expect(run.compensation).toMatchObject([
      { step: 'assign', outcome: 'reversed' },
      { step: 'first', outcome: 'reversed' },
    ]);
    expect(labels()).toEqual(['bug']);
    expect(steps.find(({ id }) => id === 'first')?.status).toBe('rolled_back');
  });
});

describe('a write that another run has made', () => {
  const assign = () => shop.begin(`name: assign\nsteps:\n${ASSIGN}`);
  const incident = () => shop.outside.incidents.get(SYS_ID) ?? { fields: {} as Record<string, string> };

  it('needs no approval: there is nothing to approve', async () => {
    await shop.work(await assign());
    shop.policy.decision = () => needsApproval();
    const again = await assign();
    await shop.work(again);
    expect((await shop.now(again)).run.status).toBe('succeeded');
    expect(shop.outside.callsOf('PATCH servicenow')).toHaveLength(1);
  });

  it('is made again if its values were changed, and then belongs to the second run', async () => {
    await shop.work(await assign());
    incident().fields.category = 'a third party';
    const again = await assign();
    await shop.work(again);
    const { run, receipts } = await shop.now(again);
    expect(run.status).toBe('succeeded');
    expect(incident().fields.category).toBe('network');
    expect(receipts).toMatchObject([{ runId: again.runId, before: { category: 'a third party' } }]);
  });

  it('is made again after an approval, if its values were changed before the decision', async () => {
    shop.policy.decision = () => needsApproval();
    const again = await assign();
    await shop.work(again);
    const approval = await shop.openApproval(again);
    shop.policy.decision = () => ALLOWED;
    await shop.work(await assign());
    incident().fields.category = 'a third party';
    await shop.say(approval, 'ana');
    await shop.finish(again);
    expect(incident().fields.category).toBe('network');
  });

  it('whose values cannot be compared is reused for a day', async () => {
    const post = '  - { id: post, tool: slack.message.post, with: { channel: "#incidents", text: "deployed" } }';
    const postOnce = async () => shop.work(await shop.begin(`name: post\nsteps:\n${post}`));
    const said = () => shop.outside.channels.get('#incidents')?.length;
    await postOnce();
    shop.clock.advance(24 * 60 * 60 * 1000);
    await postOnce();
    expect(said()).toBe(1);
    shop.clock.advance(1);
    await postOnce();
    expect(said()).toBe(2);
  });
});

describe('a step that waits for another run to make the identical write', () => {
  it('and times out has made nothing itself and needs no human', async () => {
    const maker = await shop.begin(OTHER.replace('other', 'maker'));
    shop.outside.next('POST github', { status: 500 });
    await shop.work(maker);
    await shop.command(maker, { kind: 'pause' });
    const other = await shop.begin(OTHER.replace('steps:', 'deadlineSeconds: 120\nsteps:'));
    shop.queue.send(other);
    const { run, steps } = await shop.finish(other);
    expect(run).toMatchObject({ status: 'timed_out', error: { code: 'RUN_TIMED_OUT' } });
    expect(steps).toMatchObject([{ status: 'canceled' }]);
  });

  it('has used no attempt of its own write', async () => {
    const [maker, other] = [await shop.begin(OTHER.replace('other', 'maker')), await shop.begin(OTHER)];
    shop.outside.next('POST github', ...Array(4).fill('lost_request'));
    shop.queue.send(maker);
    shop.queue.send(other);
    await shop.finish(maker);
    expect((await shop.finish(other)).steps).toMatchObject([{ status: 'succeeded', attempt: 1 }]);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { DENIED, GovernedWorkshop } from '../governance/governed-workshop.ts';
import { ISSUE } from '../workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  shop.policy.decision = () => ALLOWED;
  vi.stubGlobal('fetch', shop.outside.fetch);
});
afterEach(() => vi.unstubAllGlobals());

const LABELS = (more = '', max = 5) => `
name: labels
${more}
steps:
  - id: tag
    forEach: { items: "{% trigger.payload.labels %}", max: ${max} }
    tool: github.labels.add
    with: { owner: octo-org, repo: payments, number: 7, labels: ["{% item.name & '-' & $string(index) %}"] }
  - id: after
    tool: transform
    with: { outputs: "{% steps.tag.output %}" }
`;
const payload = (...names: string[]) => ({ trigger: { payload: { labels: names.map((name) => ({ name })) } } });
const labels = () => shop.outside.issueLabels.get(ISSUE);
const stepsOf = async (message: Parameters<typeof shop.now>[0]) =>
  new Map((await shop.now(message)).steps.map((step) => [step.id, step]));

describe('a loop', () => {
  it('makes one governed write for each item, in order, and returns the list of outputs', async () => {
    const message = await shop.begin(LABELS(), payload('a', 'b', 'c'));
    const { run, receipts } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'succeeded', writes: 3 });
    expect(labels()).toEqual(['bug', 'a-0', 'b-1', 'c-2']);
    expect(receipts.map(({ stepId }) => stepId)).toEqual(['tag__1', 'tag__2', 'tag__3']);
    expect(shop.policy.asked.map(({ request }) => request.action.fields)).toHaveLength(3);
    const steps = await stepsOf(message);
    expect(steps.get('tag__4')).toMatchObject({ status: 'succeeded', skipped: true });
    const { output } = steps.get('after') as { output: { outputs: unknown[] } };
    expect(output.outputs).toHaveLength(3);
  });

  it.each<[string, unknown, string[]]>([
    ['no value: no item', undefined, ['bug']],
    ['an empty list', [], ['bug']],
    ['one value instead of a list', { name: 'x' }, ['bug', 'x-0']],
  ])('takes %s', async (_case, list, expected) => {
    const message = await shop.begin(LABELS(), { trigger: { payload: { labels: list } } });
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(labels()).toEqual(expected);
  });

  it('fails before the first write if the list has more items than max', async () => {
    const message = await shop.begin(LABELS('', 2), payload('a', 'b', 'c'));
    expect((await shop.finish(message)).run).toMatchObject({
      status: 'failed_terminal',
      error: {
        code: 'INPUT_INVALID',
        message: 'the list has 3 items, and max is 2; nothing was done for any of them',
      },
    });
    expect(labels()).toEqual(['bug']);
  });

  it('stops at the first item that fails; with onFailure: rollback the earlier writes are undone', async () => {
    shop.policy.decision = ({ action }) => (JSON.stringify(action.fields).includes('c-2') ? DENIED : ALLOWED);
    const left = await shop.begin(LABELS(), payload('a', 'b', 'c', 'd'));
    expect((await shop.finish(left)).run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'POLICY_DENIED' },
    });
    expect(labels()).toEqual(['bug', 'a-0', 'b-1']);
    const undone = await shop.begin(LABELS('onFailure: rollback').replace('name: labels', 'name: undone'), {
      trigger: { payload: { labels: [{ name: 'p' }, { name: 'q' }, { name: 'c' }] } },
    });
    const { run } = await shop.finish(undone);
    expect(run).toMatchObject({ status: 'failed_terminal', error: { code: 'POLICY_DENIED' } });
    expect(run.compensation?.map(({ step, outcome }) => [step, outcome])).toEqual([
      ['tag__2', 'reversed'],
      ['tag__1', 'reversed'],
    ]);
    expect(labels()).toEqual(['bug', 'a-0', 'b-1']);
  });

  it('skips the items whose condition is false; their output is null', async () => {
    const yaml = LABELS().replace('    tool: github', `    when: "{% item.name != 'b' %}"\n    tool: github`);
    const message = await shop.begin(yaml, payload('a', 'b', 'c'));
    await shop.finish(message);
    expect(labels()).toEqual(['bug', 'a-0', 'c-2']);
    const { output } = (await stepsOf(message)).get('tag') as { output: unknown[] };
    expect(output.map((each) => each === null)).toEqual([false, true, false]);
  });

  it('asks for each item separately', async () => {
    const yaml = LABELS().replace('    tool: github', '    approvers: {}\n    tool: github');
    const { message, approval } = await shop.upToGate(yaml, payload('a', 'b'));
    expect(approval).toMatchObject({ stepId: 'tag__1', asks: 'approvers', action: { fields: { labels: ['a-0'] } } });
    await shop.say(approval, 'ben');
    await shop.work(message);
    const second = await shop.openApproval(message);
    expect(second).toMatchObject({ stepId: 'tag__2', action: { fields: { labels: ['b-1'] } } });
    expect(labels()).toEqual(['bug', 'a-0']);
  });

  it('with many unused steps takes a few commits', async () => {
    const message = await shop.begin(LABELS('', 100), payload('a'));
    const { run, commits } = await shop.finish(message);
    expect(run.status).toBe('succeeded');
    expect(commits.length).toBeLessThan(9);
  });
});

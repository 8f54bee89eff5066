import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readCallingWorkflow } from '../../../lambdas/workflow/called-versions.ts';
import { ALLOWED } from '../../fakes/fake-policy.ts';
import { DENIED, GovernedWorkshop } from '../governance/governed-workshop.ts';
import { ISSUE, SYS_ID } from '../workshop.ts';

let shop: GovernedWorkshop;
beforeEach(async () => {
  shop = await new GovernedWorkshop().open();
  shop.policy.decision = () => ALLOWED;
  vi.stubGlobal('fetch', shop.outside.fetch);
  await publish(LABEL, 'ben');
});
afterEach(() => vi.unstubAllGlobals());

const LABEL = `
name: label
blastRadius: medium
inputs:
  label: { type: string, required: true, maxLength: 20 }
  number: { type: integer, default: 7 }
steps:
  - { id: text, tool: transform, with: { label: "{% inputs.label & '!' %}" } }
  - id: add
    tool: github.labels.add
    with: { owner: octo-org, repo: payments, number: "{% inputs.number %}", labels: ["{% steps.text.output.label %}"] }
outputs: { written: "{% steps.text.output.label %}" }
`;

const CALLS = (more = '', top = '') => `
name: caller
${top}
steps:
  - { id: text, tool: transform, with: { label: outer } }
  - id: tag
    tool: workflow.call
    with: { workflow: label, inputs: { label: "{% trigger.title %}" } }
    ${more}
  - { id: after, tool: transform, with: { written: "{% steps.tag.output.written %}" } }
`;

async function publish(yaml: string, author = 'olivia') {
  const read = await readCallingWorkflow(shop.definitions, 'acme', yaml);
  if ('problems' in read) throw new Error(read.problems.map(({ line, message }) => `${line}: ${message}`).join('\n'));
  const [newest] = await shop.definitions.workflowVersions('acme', read.workflow.name, { limit: 1 });
  await shop.definitions.publishWorkflow('acme', { ...read.workflow, author }, (newest?.version ?? 0) + 1);
  return read.workflow;
}
const start = (fields: Record<string, unknown> = { title: 'urgent' }) =>
  shop.beginPublished('caller', { trigger: { fields: { title: 'x', ...fields } } });
const labels = () => shop.outside.issueLabels.get(ISSUE);
const problemsOf = async (yaml: string) => {
  const read = await readCallingWorkflow(shop.definitions, 'acme', yaml);
  return 'problems' in read ? read.problems.map(({ line, message }) => `${line}: ${message}`) : [];
};

describe('a call of another workflow', () => {
  it('runs its steps in the same run, with its own inputs and steps, and returns its outputs', async () => {
    await publish(CALLS());
    const message = await start();
    const { run, steps, receipts } = await shop.finish(message);
    expect(run).toMatchObject({ status: 'succeeded', writes: 1 });
    expect(labels()).toEqual(['bug', 'urgent!']);
    expect(steps.map(({ id }) => id)).toEqual(['text', 'tag__0', 'tag__text', 'tag__add', 'tag', 'after']);
    expect(steps.at(-1)).toMatchObject({ output: { written: 'urgent!' } });
    expect(receipts.map(({ stepId }) => stepId)).toEqual(['tag__add']);
  });

  it('keeps the version that was newest when the caller was published', async () => {
    const { calls } = await publish(CALLS());
    expect(calls).toEqual([{ name: 'label', version: 1, depth: 1, author: 'ben' }]);
    await publish(LABEL.replace("'!'", "'?'"));
    await shop.finish(await start());
    expect(labels()).toEqual(['bug', 'urgent!']);
  });

  it('keeps the guards of the called workflow: its blast radius, and its author is a maker', async () => {
    await publish(CALLS());
    await shop.finish(await start());
    const action = shop.policy.asked.at(-1)?.request.action;
    expect(action).toMatchObject({ blastRadius: 'medium' });
    expect(action?.makers).toEqual(expect.arrayContaining(['olivia', 'ben']));
  });

  it('is skipped as a whole if its condition is false', async () => {
    await publish(
      CALLS('when: "{% false %}"').replace('steps.tag.output.written', "steps.tag.output.written ?: 'none'"),
    );
    const { run, steps } = await shop.finish(await start());
    expect(run.status).toBe('succeeded');
    expect(steps.flatMap((step) => ('skipped' in step && step.skipped ? [step.id] : []))).toEqual([
      'tag__0',
      'tag__text',
      'tag__add',
      'tag',
    ]);
    expect(labels()).toEqual(['bug']);
  });

  it('fails before its first step if an input does not fit', async () => {
    await publish(CALLS());
    const { run, steps } = await shop.finish(await start({ title: 'far too long for this label' }));
    expect(run).toMatchObject({
      status: 'failed_terminal',
      error: { code: 'INPUT_INVALID', message: 'inputs.label must have at most 20 characters' },
    });
    expect(steps.at(-1)?.id).toBe('tag__0');
    expect(labels()).toEqual(['bug']);
  });

  it('in a loop runs once for each item, also in a branch with needs', async () => {
    const yaml = CALLS('needs: [text]\n    forEach: { items: "{% trigger.list %}", max: 3 }')
      .replace('{% trigger.title %}', '{% item %}')
      .replace('steps.tag.output.written', '$join(steps.tag.output.written)');
    await publish(yaml);
    const message = await start({ list: ['a', 'b'] });
    expect((await shop.finish(message)).run.status).toBe('succeeded');
    expect(labels()).toEqual(['bug', 'a!', 'b!']);
    expect((await shop.now(message)).steps.at(-1)).toMatchObject({ id: 'after', output: { written: 'a!b!' } });
  });

  it('is rolled back with the caller, and a called workflow that rolls back makes the caller do so', async () => {
    await publish(`${LABEL.replace('name: label', 'name: strict\nonFailure: rollback')}`);
    const last = `  - { id: denied, tool: servicenow.incident.update, with: { sysId: "${SYS_ID}", fields: { state: "6" } } }\n`;
    await publish(
      LABEL.replace('name: label', 'name: failing\nonFailure: rollback').replace('outputs:', `${last}outputs:`),
    );
    await publish(CALLS().replace('workflow: label', 'workflow: failing'));
    shop.policy.decision = ({ action }) => (action.connector === 'servicenow' ? DENIED : ALLOWED);
    const { run } = await shop.finish(await start());
    expect(run.compensation).toMatchObject([{ step: 'tag__add', outcome: 'reversed' }]);
    expect(labels()).toEqual(['bug']);
  });
});

describe('a call is refused when the caller is published', () => {
  it.each<[string, string, string]>([
    ['an unknown workflow', CALLS().replace('workflow: label', 'workflow: lable'), 'did you mean "label"?'],
    ['an unknown version', CALLS().replace('workflow: label,', 'workflow: label, version: 3,'), 'the newest is 1'],
    ['a missing input', CALLS().replace('label: "{% trigger.title %}"', ''), 'is missing; expected text'],
    ['an unknown input', CALLS().replace('inputs: { ', 'inputs: { lable: 1, '), 'did you mean "label"?'],
    ['a name that is an expression', CALLS().replace('workflow: label', 'workflow: "{% 1 %}"'), 'must be constant'],
    ['an unknown field', CALLS().replace('workflow: label,', 'workflow: label, verson: 1,'), 'did you mean "version"?'],
    ['a call of itself', CALLS().replace('name: caller', 'name: label'), 'must not call itself'],
    ['approvers on the call', CALLS('approvers: {}'), 'a call has no approvers'],
    [
      'too many steps',
      CALLS('forEach: { items: "{% trigger.list %}", max: 100 }').replace('steps:', manySteps(700)),
      'the limit is 1000',
    ],
  ])('for %s', async (_case, yaml, says) => {
    expect(await problemsOf(yaml)).toEqual([expect.stringContaining(says)]);
  });

  it.each<[string, string, string]>([
    ['validation mode', 'validation: { mode: per_step }', 'set the same mode'],
    ['refusal of drift', 'onDrift: refuse', 'set it in this workflow too'],
    ['concurrency key', 'concurrencyKey: "{% trigger.repo %}"', 'set one in this workflow'],
  ])('if it would lose the %s of the called workflow', async (_case, setting, says) => {
    await publish(LABEL.replace('blastRadius', `${setting}\nblastRadius`));
    expect(await problemsOf(CALLS())).toEqual([expect.stringContaining(says)]);
    expect(await problemsOf(CALLS('', setting))).toEqual([]);
  });

  it('if a model would choose a target of the called workflow', async () => {
    const model = '  - { id: ask, tool: model.invoke, with: { prompt: which? } }\n';
    const yaml = CALLS('').replace('steps:\n', `steps:\n${model}`);
    expect(await problemsOf(yaml.replace('trigger.title', 'steps.ask.output.text'))).toEqual([]);
    const chosen = yaml.replace('"{% trigger.title %}"', 'x, number: "{% steps.ask.output.number %}"');
    expect(await problemsOf(chosen)).toEqual([expect.stringContaining('"number" determines the target')]);
  });

  it('if calls nest too deeply', async () => {
    for (const depth of [1, 2, 3, 4, 5]) {
      const called = depth === 1 ? 'label' : `caller-${depth - 1}`;
      const inputs = depth === 1 ? '' : ', inputs: {}';
      const yaml = CALLS()
        .replace('name: caller', `name: caller-${depth}`)
        .replace('workflow: label', `workflow: ${called}`);
      await publish(
        depth === 1
          ? yaml
          : yaml
              .replace(/, inputs: \{ label.* \} \}/, `${inputs} }`)
              .replace('steps.tag.output.written', '$string(steps.tag.output)'),
      );
    }
    const deepest = CALLS().replace('workflow: label, inputs: { label: "{% trigger.title %}" }', 'workflow: caller-5');
    expect(await problemsOf(deepest)).toEqual([expect.stringContaining('nested 6 deep; the limit is 5')]);
  });
});

function manySteps(count: number): string {
  const steps = Array.from({ length: count }, (_, index) => `  - { id: s${index}, tool: transform }`);
  return `steps:\n${steps.join('\n')}`;
}

import { expect, it } from 'vitest';
import { parseWorkflow } from '../../lambdas/workflow/parse-workflow.ts';
import { stepsUsedBy } from '../../lambdas/workflow/used-outputs.ts';

const usedBy = (id: string, ...steps: string[]): string[] => {
  const workflow = parseWorkflow(['name: used', 'steps:', ...steps.map((step) => `  - {${step}}`)].join('\n'), 'used');
  const index = workflow.steps.findIndex((step) => step.id === id);
  return [...stepsUsedBy(workflow, index)].map((used) => workflow.steps[used]?.id ?? '').sort();
};
const A = 'id: a, tool: transform, with: {value: 1}';
const B = 'id: b, tool: transform, with: {value: "{% steps.a.output.value %}"}';

it.each([
  ['nothing', ['id: c, tool: transform, with: {value: "{% trigger.title %}"}'], []],
  ['in a part of a text', ['id: c, tool: transform, with: {value: "x {% steps.b.output.value %}"}'], ['a', 'b']],
  ['in a condition', ['id: c, tool: transform, when: "{% steps.a.output.value = 1 %}", with: {}'], ['a']],
  [
    'in any step, by a name that is only known later',
    ['id: c, tool: transform, with: {v: "{% $lookup(steps, trigger.title).output %}"}'],
    ['a', 'b'],
  ],
])('finds steps whose output is used %s', (_where, more, used) => {
  expect(usedBy('c', A, B, ...more)).toEqual(used);
});

it('finds the list of a loop, and the steps that its list uses', () => {
  const loop =
    'id: each, tool: transform, forEach: {items: "{% [steps.b.output.value] %}", max: 2}, with: {value: "{% item %}"}';
  const workflow = parseWorkflow(
    ['name: used', 'steps:', ...[A, B, loop].map((step) => `  - {${step}}`)].join('\n'),
    'used',
  );
  const last = workflow.steps.length - 1;
  const ids = [...stepsUsedBy(workflow, last)].map((index) => workflow.steps[index]?.id);
  expect(ids).toEqual(expect.arrayContaining(['a', 'b']));
});

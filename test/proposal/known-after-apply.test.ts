import { describe, expect, it } from 'vitest';
import { KNOWN_AFTER_APPLY, renderKnown, shownValue } from '../../lambdas/proposal/known-after-apply.ts';
import { render } from '../../lambdas/workflow/expressions/expressions.ts';
import { OwnThreadExpressions } from '../fakes/own-thread-expressions.ts';

const UNKNOWN = '(known after apply)';
const context = {
  trigger: {
    number: 7,
    items: [
      { kind: 'a', name: 'first' },
      { kind: 'b', name: 'second' },
    ],
  },
  steps: {
    known: { output: { group: 'network', count: 0 } },
    written: { output: KNOWN_AFTER_APPLY },
    mixed: { output: { a: 1, b: KNOWN_AFTER_APPLY, list: [{ x: 1, y: KNOWN_AFTER_APPLY }] } },
  },
  run: { id: KNOWN_AFTER_APPLY },
};

const scope = { expressions: new OwnThreadExpressions(() => 0), tenant: 'acme', context };

describe('a template in a plan', () => {
  it.each([
    '{% trigger.number + 1 %}',
    '{% steps.known.output %}',
    '{% steps.mixed.output.a %}',
    '{% steps.mixed.output.list.x %}',
    '{% trigger.items[kind = "b"].name %}',
    'about {% trigger.number %}: {% steps.known.output.group %}',
    '{% "steps.written" %}',
    'no expression',
  ])('%s has the value that it will have in the run', async (template) => {
    expect(await renderKnown(scope, { deep: [template] })).toEqual(await render(scope, { deep: [template] }));
  });

  it.each([
    ['{% run.id %}', UNKNOWN],
    ['{% steps.written.output.any.depth %}', UNKNOWN],
    ['{% steps.mixed.output %}', UNKNOWN],
    ['{% steps.mixed.output.list[y = 1].x %}', UNKNOWN],
    ['{% $exists(steps.written.output) ? 1 : 2 %}', UNKNOWN],
    ['{% $count(steps.*) %}', UNKNOWN],
    ['{% $lookup(steps, "written") %}', UNKNOWN],
    ['{% $keys() %}', UNKNOWN],
    ['{% $lookup("steps").written %}', UNKNOWN],
    ['#{% trigger.number %} in {% run.id %}', `#7 in ${UNKNOWN}`],
  ])('%s is not known yet', async (template, shown) => {
    expect(shownValue(await renderKnown(scope, template))).toBe(shown);
  });
});

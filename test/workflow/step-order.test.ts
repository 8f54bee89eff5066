import { describe, expect, it } from 'vitest';
import type { Step } from '../../lambdas/run/step.ts';
import { needsItself, OPEN_STEPS_MAX, runnableSteps } from '../../lambdas/workflow/step-order.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';

/** `{ a: undefined, b: ['a'] }`: each step and what it needs; undefined means all before it. */
const workflow = (needs: Record<string, string[] | undefined>) =>
  Workflow.parse({
    name: 'example',
    steps: Object.entries(needs).map(([id, needed]) => ({ id, tool: 'transform', needs: needed })),
  });
const steps = (...statuses: (Step['status'] | undefined)[]) =>
  new Map(statuses.flatMap((status, index) => (status ? [[index, { index, status } as Step]] : [])));

describe('runnable steps', () => {
  it('without needs run one after another', () => {
    const strict = workflow({ a: undefined, b: undefined, c: undefined });
    expect(runnableSteps(strict, steps())).toEqual([0]);
    expect(runnableSteps(strict, steps('running'))).toEqual([]);
    expect(runnableSteps(strict, steps('succeeded'))).toEqual([1]);
    expect(runnableSteps(strict, steps('succeeded', 'failed_terminal'))).toEqual([]);
    expect(runnableSteps(strict, steps('succeeded', 'succeeded', 'succeeded'))).toEqual([]);
  });

  it('with needs are all steps whose needs have succeeded', () => {
    const diamond = workflow({ a: [], b: ['a'], c: ['a'], d: ['b', 'c'] });
    expect(runnableSteps(diamond, steps())).toEqual([0]);
    expect(runnableSteps(diamond, steps('succeeded'))).toEqual([1, 2]);
    expect(runnableSteps(diamond, steps('succeeded', 'running'))).toEqual([2]);
    expect(runnableSteps(diamond, steps('succeeded', 'succeeded', 'running'))).toEqual([]);
    expect(runnableSteps(diamond, steps('succeeded', 'succeeded', 'succeeded'))).toEqual([3]);
  });

  it('a step without needs waits for all earlier steps', () => {
    const mixed = workflow({ a: [], b: [], c: undefined });
    expect(runnableSteps(mixed, steps())).toEqual([0, 1]);
    expect(runnableSteps(mixed, steps('succeeded', 'running'))).toEqual([]);
    expect(runnableSteps(mixed, steps('succeeded', 'succeeded'))).toEqual([2]);
  });

  it('are limited to the number that the final commit can close', () => {
    const wide = workflow(Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`s${index}`, []])));
    const waiting = Array.from({ length: OPEN_STEPS_MAX }, () => 'waiting_external' as const);
    expect(runnableSteps(wide, steps())).toHaveLength(OPEN_STEPS_MAX);
    expect(runnableSteps(wide, steps(...waiting))).toEqual([]);
    expect(runnableSteps(wide, steps('succeeded', ...waiting.slice(1)))).toEqual([OPEN_STEPS_MAX]);
  });
});

it('a step in a cycle needs itself; a step that depends on the cycle does not', () => {
  const circle = workflow({ a: ['c'], b: [], c: ['a'], d: ['a'] });
  expect(circle.steps.map((_, index) => needsItself(circle, index))).toEqual([true, false, true, false]);
});

import { describe, expect, it } from 'vitest';
import type { Step } from '../../lambdas/run/step.ts';
import { findCycle, needsOf, OPEN_STEPS_MAX, runnableSteps } from '../../lambdas/workflow/order.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';

const workflow = (...steps: { id: string; needs?: string[] }[]) =>
  Workflow.parse({ name: 'ordered', steps: steps.map((step) => ({ tool: 'transform', ...step })) });

const rows = (...statuses: [index: number, status: Step['status']][]) =>
  new Map(statuses.map(([index, status]) => [index, { index, status } as Step]));

describe('the order of steps', () => {
  it('without needs is that of the file, one at a time', () => {
    const strict = workflow({ id: 'a' }, { id: 'b' });
    expect(needsOf(strict, 1)).toEqual([0]);
    expect(runnableSteps(strict, rows())).toEqual([0]);
    expect(runnableSteps(strict, rows([0, 'running']))).toEqual([]);
    expect(runnableSteps(strict, rows([0, 'succeeded']))).toEqual([1]);
    expect(runnableSteps(strict, rows([0, 'succeeded'], [1, 'succeeded']))).toEqual([]);
  });

  it('with needs begins every step whose needs have succeeded', () => {
    const diamond = workflow(
      { id: 'a' },
      { id: 'b', needs: ['a'] },
      { id: 'c', needs: ['a'] },
      { id: 'd', needs: ['b', 'c'] },
    );
    expect(runnableSteps(diamond, rows([0, 'succeeded']))).toEqual([1, 2]);
    expect(runnableSteps(diamond, rows([0, 'succeeded'], [1, 'succeeded'], [2, 'failed_terminal']))).toEqual([]);
  });

  it('leaves no more steps open at once than the commit that ends the run can close', () => {
    const wide = workflow(...Array.from({ length: 200 }, (_, index) => ({ id: `s${index}`, needs: [] })));
    expect(runnableSteps(wide, rows())).toHaveLength(OPEN_STEPS_MAX);
    const waiting = Array.from(
      { length: OPEN_STEPS_MAX },
      (_, index) => [index, 'waiting_external'] as [number, Step['status']],
    );
    expect(runnableSteps(wide, rows(...waiting))).toEqual([]);
    expect(runnableSteps(wide, rows(...waiting.slice(1), [0, 'succeeded']))).toEqual([OPEN_STEPS_MAX]);
    expect(3 * OPEN_STEPS_MAX + 10).toBeLessThanOrEqual(100);
  });

  it('names the steps of a circle', () => {
    expect(findCycle(workflow({ id: 'a', needs: ['b'] }, { id: 'b', needs: ['a'] }))).toEqual(['a', 'b']);
    expect(findCycle(workflow({ id: 'a' }, { id: 'b', needs: ['a'] }))).toEqual([]);
  });
});

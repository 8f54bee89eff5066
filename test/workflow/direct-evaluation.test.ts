import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NOT_DIRECT } from '../../lambdas/workflow/expressions/direct-evaluation.ts';
import { evaluate, plainResult } from '../../lambdas/workflow/expressions/evaluate.ts';
import { planOf } from '../../lambdas/workflow/expressions/expression-plan.ts';
import { ExpressionPool } from '../../lambdas/workflow/expressions/expression-pool.ts';

const NAMES = ['a', 'b', 'c'];
const path = fc
  .array(fc.constantFrom(...NAMES, 'constructor', '__proto__'), { minLength: 0, maxLength: 3 })
  .map((names) => ['trigger', ...names.map((name) => `\`${name}\``)].join('.'));
const literal = fc.constantFrom('"x"', '""', '0', '1', '-2.5', 'true', 'false', 'null');
const { source } = fc.letrec((tie) => ({
  source: fc.oneof(
    { depthSize: 'small' },
    path,
    literal,
    fc
      .tuple(tie('source'), fc.constantFrom('=', '!=', 'and', 'or', '&', '+', '<'), tie('source'))
      .map(([left, operator, right]) => `${left} ${operator} ${right}`),
  ),
}));
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('x', '', 0, 1, -2.5, true, false, null, 1e21),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 3 }),
  ),
})).value;

describe('direct evaluation', () => {
  it('has the same result as JSONata', async () => {
    let direct = 0;
    await fc.assert(
      fc.asyncProperty(source as fc.Arbitrary<string>, value, async (text, given) => {
        const context = { trigger: given as Record<string, unknown> };
        const found = planOf(text).direct?.(context) ?? null;
        if (planOf(text).direct === undefined || found === NOT_DIRECT) return;
        direct += 1;
        expect(plainResult(text, found)).toEqual(await evaluate(text, context, 0));
      }),
      { numRuns: 3_000 },
    );
    expect(direct).toBeGreaterThan(500);
  });

  it('starts no process', async () => {
    const pool = new ExpressionPool({
      now: () => 0,
      start: () => {
        throw new Error('a process was started');
      },
    });
    const context = { trigger: { number: 7, tags: ['a'], deep: { er: 'x' } }, run: { id: 'run_1' } };
    const sources = ['trigger.number', 'trigger.deep', 'trigger.number = 7', 'run.id & "-" & trigger.deep.er', '1'];
    const evaluated = await pool.evaluate({ tenant: 'acme', sources, context });
    expect(evaluated).toEqual([7, { er: 'x' }, true, 'run_1-x', 1]);
    const lists = pool.evaluate({ tenant: 'acme', sources: ['trigger.tags'], context });
    await expect(lists).rejects.toThrow('could not be started');
  });
});

import { expect, it } from 'vitest';
import { systemStopwatch } from '../../lambdas/entry/system.ts';
import { ExpressionPool } from '../../lambdas/workflow/expressions/expression-pool.ts';
import { ExpressionProcess } from '../../lambdas/workflow/expressions/expression-process.ts';

it('starts a new process if an idle process has ended, as on Lambda', async () => {
  const started: ExpressionProcess[] = [];
  const pool = new ExpressionPool({
    start: () => {
      const process = new ExpressionProcess(systemStopwatch, {});
      started.push(process);
      return process;
    },
    now: () => 0,
  });
  const sums = () =>
    Promise.all(
      ['acme', 'globex'].map((tenant) =>
        pool.evaluate({ tenant, sources: ['$sum(trigger.numbers)'], context: { trigger: { numbers: [1, 2] } } }),
      ),
    );
  try {
    await sums();
    expect(started).toHaveLength(2);
    for (const process of started) process.stop();
    // One tenant alone meets both of them: neither may be taken for an expression that ends its process.
    const alone = { tenant: 'acme', sources: ['$sum(trigger.numbers)'], context: { trigger: { numbers: [3, 4] } } };
    expect(await pool.evaluate(alone)).toEqual([7]);
    expect(started).toHaveLength(3);
  } finally {
    pool.stop();
  }
});

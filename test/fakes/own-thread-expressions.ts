import { evaluate } from '../../lambdas/workflow/expressions/evaluate.ts';
import type { Evaluation, Expressions } from '../../lambdas/workflow/expressions/expressions.ts';

/** Evaluates every expression in this thread, one after the other, so that a simulation can be repeated exactly. */
export class OwnThreadExpressions implements Expressions {
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  async evaluate({ sources, context }: Evaluation): Promise<unknown[]> {
    const values: unknown[] = [];
    for (const source of sources) values.push((await evaluate(source, context, this.#now())).value);
    return values;
  }
}

import type jsonata from 'jsonata';
import { evaluate } from '../../lambdas/workflow/expressions/evaluate.ts';
import type { Evaluation, Expressions } from '../../lambdas/workflow/expressions/expressions.ts';
import { compile } from '../../lambdas/workflow/expressions/jsonata-syntax.ts';

/** By source. Simulations evaluate the same few expressions thousands of times, and parsing takes longer than evaluating. */
const unused = new Map<string, jsonata.Expression[]>();

/** Evaluates every expression in this thread, one after the other, so that a simulation can be repeated exactly. */
export class OwnThreadExpressions implements Expressions {
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  async evaluate({ sources, context }: Evaluation): Promise<unknown[]> {
    const values: unknown[] = [];
    for (const source of sources) {
      let used = unused.get(source)?.pop();
      const compiled = () => {
        used ??= compile(source);
        return used;
      };
      values.push((await evaluate(source, context, this.#now(), compiled)).value);
      if (used) unused.set(source, [...(unused.get(source) ?? []), used]);
    }
    return values;
  }
}

import type { ExpressionContext } from './expressions/expressions.ts';
import type { Reference } from './expressions/references.ts';

/**
 * What the expressions of an expanded step see, and when it is skipped. A step of a called workflow sees the inputs of the
 * call and the steps of its own workflow. A step that runs for an item sees `item` and `index`.
 */
export interface StepScope {
  /** `steps.x` is the step with this prefix and x. */
  prefix?: string;
  /** `inputs` is the output of this step. */
  inputs?: string;
  item?: { list: string; position: number };
  /** If this step was skipped, this one is too. */
  leader: string;
}

type Steps = Record<string, { output: unknown }>;

/** The context of a step's expressions, made of the context of the run. */
export function scopedContext<Context extends ExpressionContext & { steps: Steps }>(
  context: Context,
  scope: StepScope | undefined,
): ExpressionContext {
  if (!scope) return context;
  const { prefix = '', inputs, item } = scope;
  const steps = Object.entries(context.steps).flatMap(([id, step]) =>
    id.startsWith(prefix) ? [[id.slice(prefix.length), step] as const] : [],
  );
  const list = item && context.steps[item.list]?.output;
  return {
    ...context,
    steps: Object.fromEntries(steps),
    ...(inputs !== undefined && { inputs: (context.steps[inputs]?.output ?? {}) as Record<string, unknown> }),
    // A plan may not know the list yet; then it does not know the item.
    ...(item && { item: Array.isArray(list) ? list[item.position] : list, index: item.position }),
  };
}

/** The steps of the run whose output a reference reads: ids, or `undefined` for any step. */
export function stepsRead([root, id]: Reference, scope: StepScope | undefined): (string | undefined)[] {
  switch (root) {
    case undefined:
      return [undefined];
    case 'steps':
      return [id === undefined ? undefined : `${scope?.prefix ?? ''}${id}`];
    case 'inputs':
      return scope?.inputs === undefined ? [] : [scope.inputs];
    case 'item':
      return scope?.item ? [scope.item.list] : [];
    default:
      return [];
  }
}

/** The step as the run or the plan knows it. `undecided`: only a run will know whether it is skipped. */
export type Leader = 'runs' | 'skipped' | 'undecided';

export interface KnownSteps {
  /** Nothing if the step has not ended yet. */
  leader(id: string): Leader | undefined;
  output(id: string): unknown;
}

/** Whether its scope skips the step: its call or loop is skipped, or the list has no such item. */
export function skippedByScope(scope: StepScope | undefined, known: KnownSteps): Leader | undefined {
  if (!scope) return 'runs';
  const leader = known.leader(scope.leader);
  if (leader !== 'runs' || !scope.item) return leader;
  const list = known.output(scope.item.list);
  if (!Array.isArray(list)) return 'undecided';
  return scope.item.position < list.length ? 'runs' : 'skipped';
}

import { referencesIn } from './expressions/references.ts';
import { expressionsIn } from './expressions/template.ts';
import { stepsBefore } from './step-order.ts';
import { stepsRead } from './step-scope.ts';
import type { Workflow } from './workflow.ts';

const known = new WeakMap<Workflow, Map<number, ReadonlySet<number>>>();

/**
 * The steps whose output is in a step: in its input, its condition, its loop or its call, directly or through other
 * steps. May include more than it uses, never less.
 */
export function stepsUsedBy(workflow: Workflow, index: number): ReadonlySet<number> {
  const ofWorkflow = known.get(workflow) ?? new Map<number, ReadonlySet<number>>();
  known.set(workflow, ofWorkflow);
  const found = ofWorkflow.get(index) ?? followed(workflow, index);
  ofWorkflow.set(index, found);
  return found;
}

function followed(workflow: Workflow, index: number): ReadonlySet<number> {
  const indexes = new Map(workflow.steps.map(({ id }, position) => [id, position]));
  const found = new Set<number>();
  const open = [index];
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    for (const id of usedDirectly(workflow, step)) {
      const used = id === undefined ? [...stepsBefore(workflow, step)] : [indexes.get(id) ?? step];
      open.push(...used.filter((each) => !found.has(each) && each !== step));
      for (const each of used) if (each !== index) found.add(each);
    }
  }
  return found;
}

/** Ids of steps; undefined for any earlier step. */
function usedDirectly(workflow: Workflow, index: number): (string | undefined)[] {
  const { with: input, when, scope } = workflow.steps[index] ?? {};
  const read = expressionsIn({ input, when })
    .flatMap(({ source }) => referencesIn(source))
    .flatMap((reference) => stepsRead(reference, scope));
  // They decide whether the step runs.
  return [...read, ...(scope ? [scope.leader] : []), ...(scope?.item ? [scope.item.list] : [])];
}

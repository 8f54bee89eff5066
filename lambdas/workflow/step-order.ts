import { isFinished, type Steps } from '../run/step.ts';
import type { Workflow } from './workflow.ts';

/** The index of each step id, cached per workflow. */
const INDEXES = new WeakMap<Workflow['steps'], ReadonlyMap<string, number>>();

function indexesOf({ steps }: Workflow): ReadonlyMap<string, number> {
  const known = INDEXES.get(steps);
  if (known) return known;
  // The first of two steps with the same id.
  const indexes = new Map(steps.map(({ id }, index) => [id, index] as const).reverse());
  INDEXES.set(steps, indexes);
  return indexes;
}

/** The steps that must succeed before this one. Without `needs`, these are all earlier steps. */
export function needsOf(workflow: Workflow, index: number): number[] {
  const { needs } = workflow.steps[index] ?? {};
  if (!needs) return Array.from({ length: index }, (_, earlier) => earlier);
  const indexes = indexesOf(workflow);
  return needs.map((id) => indexes.get(id) ?? -1);
}

/** All steps that have always run before this one. */
export function stepsBefore(workflow: Workflow, index: number): ReadonlySet<number> {
  const found = new Set<number>();
  const open: number[] = [];
  let allBelow = 0;
  const addNeeds = (step: number) => {
    if (workflow.steps[step]?.needs) open.push(...needsOf(workflow, step));
    // All earlier steps, each added once.
    else for (; allBelow < step; allBelow += 1) open.push(allBelow);
  };
  addNeeds(index);
  for (let need = open.pop(); need !== undefined; need = open.pop()) {
    if (need < 0 || found.has(need)) continue;
    found.add(need);
    addNeeds(need);
  }
  return found;
}

function needsAreMet(workflow: Workflow, index: number, isDone: (need: number) => boolean): boolean {
  if (workflow.steps[index]?.needs) return needsOf(workflow, index).every(isDone);
  for (let earlier = 0; earlier < index; earlier += 1) if (!isDone(earlier)) return false;
  return true;
}

/** The commit that ends a run closes all open steps, with up to three rows each. A transaction holds 100 rows. */
export const OPEN_STEPS_MAX = 30;

/** Steps that have not started and whose needs have succeeded, in file order, up to the limit of open steps. */
export function runnableSteps(workflow: Workflow, steps: Steps): number[] {
  // Without `needs`, only the step after the finished ones can run. This avoids a loop over all steps.
  const strict = workflow.steps.every((step) => step.needs === undefined);
  if (strict) {
    const next = steps.size;
    const done = next === 0 || steps.get(next - 1)?.status === 'succeeded';
    return done && next < workflow.steps.length ? [next] : [];
  }
  const open = [...steps.values()].filter((step) => !isFinished(step)).length;
  const runnable = workflow.steps.flatMap((_, index) =>
    !steps.has(index) && needsAreMet(workflow, index, (need) => steps.get(need)?.status === 'succeeded') ? [index] : [],
  );
  return runnable.slice(0, Math.max(0, OPEN_STEPS_MAX - open));
}

/** The steps in an order that respects their needs. Steps in a cycle are omitted. */
export function inOrder(workflow: Workflow): number[] {
  const placed = new Set<number>();
  for (let before = -1; placed.size > before; ) {
    before = placed.size;
    for (const index of workflow.steps.keys()) {
      if (!placed.has(index) && needsAreMet(workflow, index, (need) => placed.has(need))) placed.add(index);
    }
  }
  return [...placed];
}

/** A condition, a loop, or the condition of its call may skip the step. */
export function mayBeSkipped(workflow: Workflow, index: number): boolean {
  const { when, scope } = workflow.steps[index] ?? {};
  if (when !== undefined || scope?.item) return true;
  const leader = scope && indexesOf(workflow).get(scope.leader);
  return leader !== undefined && mayBeSkipped(workflow, leader);
}

export const needsItself = (workflow: Workflow, index: number): boolean => stepsBefore(workflow, index).has(index);

import { isFinished, type Steps } from '../run/step.ts';
import type { Workflow } from './workflow.ts';

/** Where each step stands, found once for a workflow. */
const PLACES = new WeakMap<Workflow['steps'], ReadonlyMap<string, number>>();

function placesOf({ steps }: Workflow): ReadonlyMap<string, number> {
  const known = PLACES.get(steps);
  if (known) return known;
  // The first of two that are called the same.
  const places = new Map(steps.map(({ id }, index) => [id, index] as const).reverse());
  PLACES.set(steps, places);
  return places;
}

/** The indexes of the steps that must have succeeded before this one. Without `needs`, that is every earlier one. */
export function needsOf(workflow: Workflow, index: number): number[] {
  const { needs } = workflow.steps[index] ?? {};
  if (!needs) return Array.from({ length: index }, (_, earlier) => earlier);
  const places = placesOf(workflow);
  return needs.map((id) => places.get(id) ?? -1);
}

/** The indexes of the steps that have surely run before this one. */
export function stepsBefore(workflow: Workflow, index: number): ReadonlySet<number> {
  const found = new Set<number>();
  const open: number[] = [];
  let allBelow = 0;
  const look = (step: number) => {
    if (workflow.steps[step]?.needs) open.push(...needsOf(workflow, step));
    // Every earlier one, each of which is looked at once.
    else for (; allBelow < step; allBelow += 1) open.push(allBelow);
  };
  look(index);
  for (let need = open.pop(); need !== undefined; need = open.pop()) {
    if (need < 0 || found.has(need)) continue;
    found.add(need);
    look(need);
  }
  return found;
}

/** Whether all that this step needs is done. */
function needsAreMet(workflow: Workflow, index: number, isDone: (need: number) => boolean): boolean {
  if (workflow.steps[index]?.needs) return needsOf(workflow, index).every(isDone);
  for (let earlier = 0; earlier < index; earlier += 1) if (!isDone(earlier)) return false;
  return true;
}

/** The commit that ends a run closes all its open steps, up to three rows each, and a transaction holds 100. */
export const OPEN_STEPS_MAX = 30;

/** Steps nobody has begun whose needs are all met, in the order of the file, as many as may be open beside the others. */
export function runnableSteps(workflow: Workflow, steps: Steps): number[] {
  // In a strictly ordered workflow nothing beyond the first unfinished step can run: a long one is not walked to its end.
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

/** The indexes of the steps in an order in which each comes after what it needs; those in a circle are left out. */
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

/** Whether the step would have to run before itself. */
export const needsItself = (workflow: Workflow, index: number): boolean => stepsBefore(workflow, index).has(index);

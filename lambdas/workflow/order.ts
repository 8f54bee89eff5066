import type { Steps } from '../run/step.ts';
import type { Workflow } from './workflow.ts';

/** The indexes of the steps that must have succeeded before this one. Without `needs`, that is every earlier one. */
export function needsOf(workflow: Workflow, index: number): number[] {
  const { needs } = workflow.steps[index] ?? {};
  if (!needs) return Array.from({ length: index }, (_, earlier) => earlier);
  return needs.map((id) => workflow.steps.findIndex((step) => step.id === id));
}

/** Steps nobody has begun whose needs are all met, in the order of the file. */
export function runnableSteps(workflow: Workflow, steps: Steps): number[] {
  // In a strictly ordered workflow nothing beyond the first unfinished step can run: a long one is not walked to its end.
  const strict = workflow.steps.every((step) => step.needs === undefined);
  if (strict) {
    const next = steps.size;
    const done = next === 0 || steps.get(next - 1)?.status === 'succeeded';
    return done && next < workflow.steps.length ? [next] : [];
  }
  return workflow.steps.flatMap((_, index) =>
    !steps.has(index) && needsOf(workflow, index).every((need) => steps.get(need)?.status === 'succeeded')
      ? [index]
      : [],
  );
}

/** Steps in an order in which each comes after what it needs, or the ids of those that need each other. */
export function findCycle(workflow: Workflow): string[] {
  const open = new Set(workflow.steps.keys());
  for (let moved = true; moved; ) {
    moved = false;
    for (const index of open) {
      if (needsOf(workflow, index).every((need) => !open.has(need))) {
        open.delete(index);
        moved = true;
      }
    }
  }
  return [...open].map((index) => workflow.steps[index]?.id ?? '');
}

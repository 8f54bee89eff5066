import { type DerivedTarget, modelTargets } from '../model-flow.ts';
import { stepKindOf } from '../step-kinds.ts';
import type { Workflow } from '../workflow.ts';
import type { Problem } from './check-expressions.ts';

/** Where a model would pick what a step reaches, or who approves: that is refused before it can run. */
export function modelFlowProblems(workflow: Workflow, index: number): Problem[] {
  const kind = stepKindOf(workflow.steps[index]?.tool ?? '');
  return (modelTargets(workflow).get(index) ?? []).flatMap((target) => {
    if (kind?.requestsApproval) return [{ path: target.path, message: approverIsDerived(target) }];
    return target.how === 'carried' ? [{ path: target.path, message: targetIsDerived(target) }] : [];
  });
}

const modelsOf = ({ from }: DerivedTarget) => from.map((id) => `steps.${id}`).join(', ');

export const approverIsDerived = (target: DerivedTarget): string =>
  `"${target.field}" decides who approves, and it depends on a model (${modelsOf(target)}); write it out`;

const targetIsDerived = (target: DerivedTarget): string =>
  `"${target.field}" decides where this step reaches, and it holds the output of a model (${modelsOf(target)}); write it out, ` +
  'or choose between constants, {% steps.x.output.team = "db" ? "#db" : "#ops" %}, which people then approve';

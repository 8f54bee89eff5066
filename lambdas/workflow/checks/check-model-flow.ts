import { type DerivedTarget, modelTargets } from '../model-flow.ts';
import { stepKindOf } from '../step-kinds.ts';
import type { Workflow } from '../workflow.ts';
import type { Problem } from './check-expressions.ts';

/** Finds steps where a model would determine the target or the approvers. */
export function modelFlowProblems(workflow: Workflow, index: number): Problem[] {
  const kind = stepKindOf(workflow.steps[index]?.tool ?? '');
  return (modelTargets(workflow).get(index) ?? []).flatMap((target) => {
    if (kind?.requestsApproval) return [{ path: target.path, message: approverIsDerived(target) }];
    return target.how === 'carried' ? [{ path: target.path, message: targetIsDerived(target) }] : [];
  });
}

const modelsOf = ({ from }: DerivedTarget) => from.map((id) => `steps.${id}`).join(', ');

export const approverIsDerived = (target: DerivedTarget): string =>
  `"${target.field}" determines who approves, so it must not depend on a model (${modelsOf(target)}); use a constant`;

const targetIsDerived = (target: DerivedTarget): string =>
  `"${target.field}" determines the target, so it must not contain the output of a model (${modelsOf(target)}); use a constant, ` +
  'or choose between constants: {% steps.x.output.team = "db" ? "#db" : "#ops" %} (people must then approve the step)';

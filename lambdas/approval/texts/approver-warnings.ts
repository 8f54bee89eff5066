import { findOperation } from '../../connectors/registry.ts';
import type { Person } from '../../people/people.ts';
import { higher, stricter } from '../../policy/approval-requirement.ts';
import { ALWAYS_TWO } from '../../policy/gates.ts';
import type { ApprovalRequirement } from '../../policy/policy.ts';
import { ApprovalInput, stepKindOf } from '../../workflow/step-kinds.ts';
import type { Workflow, WorkflowStep } from '../../workflow/workflow.ts';
import { missingApprovers, sentenceText } from './missing-approvers.ts';

/** The steps of a workflow whose required approval nobody could give now. Policy may require more, which a plan shows. */
export function approverWarnings(workflow: Workflow, author: string, people: readonly Person[], at: string): string[] {
  return workflow.steps.flatMap((step) => {
    const requirement = requirementOf(workflow, step);
    const missing = requirement && missingApprovers({ requirement, makers: [author] }, people, at);
    return missing ? [`step ${step.id}: ${sentenceText(missing)}`] : [];
  });
}

/** What the workflow itself requires, without values of a run. */
function requirementOf(workflow: Workflow, step: WorkflowStep): ApprovalRequirement | undefined {
  if (stepKindOf(step.tool)?.requestsApproval) {
    const { data } = ApprovalInput.safeParse(step.with);
    const isConstant = data && !data.groups.flat().some((group) => group.includes('{%'));
    return isConstant ? { tier: data.tier, quorum: data.quorum, groups: data.groups } : undefined;
  }
  const operation = findOperation(step.tool);
  if (!operation || operation.effect === 'read') return undefined;
  const isHigh = (step.blastRadius ?? workflow.blastRadius) === 'high' || operation.destructive === true;
  const required: ApprovalRequirement[] = [
    ...(isHigh ? [ALWAYS_TWO] : []),
    ...(step.approvers ? [{ tier: higher(operation.risk, step.risk), ...step.approvers }] : []),
  ];
  return required.length > 0 ? required.reduce(stricter) : undefined;
}

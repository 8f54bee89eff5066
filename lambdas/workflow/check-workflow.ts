import { type Operation, RISKS } from '../connectors/connector.ts';
import { findOperation, toolNames } from '../connectors/registry.ts';
import { expressionProblems, type Problem, type Visible } from './check-expressions.ts';
import { inputProblems } from './check-input.ts';
import { INNER_TOOL_INPUTS } from './inner-tools.ts';
import { findCycle, needsOf } from './order.ts';
import type { Workflow, WorkflowStep } from './workflow.ts';

/** Everything about a well-formed workflow that would only show when it runs, or never: each with its place and what to do. */
export function workflowProblems(workflow: Workflow): Problem[] {
  const problems = [
    ...settingProblems(workflow),
    ...workflow.steps.flatMap((step, index) =>
      stepProblems(workflow, step, index).map(({ path, message }) => ({ path: ['steps', index, ...path], message })),
    ),
  ];
  return problems.length > 0 ? problems : cycleProblems(workflow);
}

function cycleProblems(workflow: Workflow): Problem[] {
  return findCycle(workflow).map((id) => {
    const index = workflow.steps.findIndex((step) => step.id === id);
    const message = `"${id}" needs itself through others; take one need out of the circle`;
    return { path: ['steps', index, 'needs'], message };
  });
}

/** Evaluated before any step runs. */
const BEFORE_STEPS: Visible = { roots: ['trigger', 'enrichment'], steps: new Set() };

function settingProblems(workflow: Workflow): Problem[] {
  const { validation, approvals, onFailure, onDrift, concurrencyKey, steps } = workflow;
  const problems: Problem[] = [];
  const at = (path: PropertyKey[], message: string) => problems.push({ path, message });
  if (validation?.mode === 'final_only') {
    if (workflow.blastRadius !== 'low') at(['validation', 'mode'], finalOnly(`blastRadius: ${workflow.blastRadius}`));
    for (const [index, { id, blastRadius = 'low' }] of steps.entries()) {
      if (blastRadius !== 'low') at(['steps', index, 'blastRadius'], finalOnly(`"${id}" has ${blastRadius}`));
    }
  }
  const { slaSeconds, expiresSeconds } = approvals;
  if (slaSeconds !== undefined && expiresSeconds !== undefined && slaSeconds >= expiresSeconds) {
    at(['approvals', 'slaSeconds'], `others are called before it is over: make it less than ${expiresSeconds}`);
  }
  if (onFailure === 'rollback' && !steps.some(isReversible)) {
    at(['onFailure'], 'no step writes anything that can be taken back; use fail or pause');
  }
  if (onDrift === 'refuse' && !steps.some((step) => writeOf(step)?.before)) {
    at(['onDrift'], 'no step writes anything that can be compared with what was there; take it out');
  }
  for (const { message } of expressionProblems(concurrencyKey, BEFORE_STEPS)) at(['concurrencyKey'], message);
  return problems;
}

const finalOnly = (but: string) =>
  `final_only is for blast radius low, but ${but}; use per_step, per_phase or critical_only`;

function stepProblems(workflow: Workflow, step: WorkflowStep, index: number): Problem[] {
  const ids = workflow.steps.map(({ id }) => id);
  const problems: Problem[] = [];
  const at = (path: PropertyKey[], message: string) => problems.push({ path, message });
  if (ids.indexOf(step.id) < index) at(['id'], `another step is called "${step.id}"; give each its own id`);
  if (!toolNames().includes(step.tool)) {
    at(['tool'], `there is no tool "${step.tool}"; use one of ${toolNames().join(', ')}`);
  }
  for (const need of step.needs ?? []) {
    if (!ids.includes(need) || need === step.id)
      at(['needs'], `"${need}" is no other step; there are ${ids.join(', ')}`);
  }
  const operation = findOperation(step.tool);
  if (operation && step.risk && RISKS.indexOf(step.risk) < RISKS.indexOf(operation.risk)) {
    at(['risk'], `${step.tool} is of risk ${operation.risk}; a step may say it is more, never less`);
  }
  const earlier = stepsBefore(workflow, index);
  if (step.rollback === 'auto' && ![step, ...earlier].some(isReversible)) {
    at(['rollback'], 'neither this step nor one before it writes anything that can be taken back; take it out');
  }
  const visible: Visible = {
    roots: ['trigger', 'enrichment', 'steps', 'run'],
    steps: new Set(earlier.map(({ id }) => id)),
  };
  for (const field of ['with', 'when', 'confidence'] as const) {
    for (const { path, message } of expressionProblems(step[field], visible)) at([field, ...path], message);
  }
  const schema = operation?.input ?? INNER_TOOL_INPUTS[step.tool];
  for (const { path, message } of schema ? inputProblems(schema, step.with) : []) at(['with', ...path], message);
  return problems;
}

/** The steps that have surely run before this one. */
function stepsBefore(workflow: Workflow, index: number): WorkflowStep[] {
  const found = new Set<number>();
  const open = needsOf(workflow, index);
  for (let need = open.pop(); need !== undefined; need = open.pop()) {
    if (need < 0 || found.has(need)) continue;
    found.add(need);
    open.push(...needsOf(workflow, need));
  }
  return workflow.steps.filter((_, other) => found.has(other));
}

/** The write a step makes, if it makes one. */
function writeOf({ tool }: WorkflowStep): Operation | undefined {
  const operation = findOperation(tool);
  return operation?.effect === 'read' ? undefined : operation;
}

const isReversible = (step: WorkflowStep): boolean => writeOf(step)?.reversible === true;

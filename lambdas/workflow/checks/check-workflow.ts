import { connectorOf, type Operation } from '../../connectors/connector.ts';
import { findOperation, toolNames } from '../../connectors/registry.ts';
import { didYouMean } from '../../entry/did-you-mean.ts';
import { atLeast } from '../../policy/approval-requirement.ts';
import { finalWrite } from '../../policy/gates.ts';
import { APPROVAL_EXPIRES_AFTER_MS } from '../../run/approval.ts';
import { EXPRESSION_MAX_CHARACTERS } from '../expressions/jsonata-syntax.ts';
import { expressionsIn } from '../expressions/template.ts';
import { FILE_KINDS, stepKindOf } from '../step-kinds.ts';
import { needsItself, stepsBefore } from '../step-order.ts';
import { urlProblems } from '../url-template.ts';
import { CALL, NEEDS_MAX, STEPS_MAX, type Workflow, type WorkflowStep } from '../workflow.ts';
import { expressionProblems, type Problem, type Visible } from './check-expressions.ts';
import { inputProblems } from './check-input.ts';
import { markdownProblems } from './check-markdown.ts';
import { modelFlowProblems } from './check-model-flow.ts';
import { sessionProblems } from './check-session.ts';
import { waitProblems } from './check-waits.ts';

/** Finds mistakes in a well-formed workflow that would otherwise appear only in a run. */
export function workflowProblems(workflow: Workflow, max: number): Problem[] {
  // The schema rejects more steps than this.
  const steps = workflow.steps.slice(0, STEPS_MAX);
  const bounded = { ...workflow, steps };
  const large = expressionsTooLarge(bounded);
  if (large) return [large];
  const problems = settingProblems(bounded);
  for (const [index, step] of steps.entries()) {
    if (problems.length >= max) break;
    for (const { path, message } of stepProblems(bounded, step, index)) {
      problems.push({ path: ['steps', index, ...path], message });
    }
  }
  return problems.slice(0, max);
}

/** In the worst case, JSONata's parser needs quadratic time. This limits the total for all expressions. */
const PARSING_MAX = 3 * EXPRESSION_MAX_CHARACTERS ** 2;

function expressionsTooLarge({ concurrencyKey, steps }: Workflow): Problem | undefined {
  const templates = steps.map((step) => [step.with, step.when, step.confidence, step.message]);
  const parsing = expressionsIn([concurrencyKey, templates]).reduce((sum, { source }) => sum + source.length ** 2, 0);
  if (parsing <= PARSING_MAX) return undefined;
  return {
    path: ['steps'],
    message: 'the expressions are too many or too long; split the workflow',
  };
}

const TOOLS = [...FILE_KINDS.map(([tool]) => tool), ...toolNames()];

/** Some checks need to know what every step writes. */
const toolsAreKnown = ({ steps }: Workflow): boolean => steps.every(({ tool }) => isTool(tool));

const isTool = (tool: string): boolean => TOOLS.includes(tool) || stepKindOf(tool) !== undefined;

/** Evaluated before any step runs. */
const beforeSteps = ({ inputs = {} }: Workflow): Visible => ({
  roots: ['trigger', 'enrichment', 'inputs'],
  steps: new Set(),
  inputs: Object.keys(inputs),
});

function settingProblems(workflow: Workflow): Problem[] {
  const { approvals, onFailure, onDrift, concurrencyKey, steps } = workflow;
  const problems = finalOnlyProblems(workflow);
  const at = (path: PropertyKey[], message: string) => problems.push({ path, message });
  const { slaSeconds, expiresSeconds = APPROVAL_EXPIRES_AFTER_MS / 1000 } = approvals;
  if (slaSeconds !== undefined && slaSeconds >= expiresSeconds) {
    at(
      ['approvals', 'slaSeconds'],
      `must be less than expiresSeconds (${expiresSeconds} s); decrease slaSeconds or increase expiresSeconds`,
    );
  }
  if (toolsAreKnown(workflow) && onFailure === 'rollback' && !steps.some(isReversible)) {
    at(['onFailure'], 'no step makes a reversible write; use fail or pause');
  }
  if (toolsAreKnown(workflow) && onDrift === 'refuse' && !steps.some((step) => writeOf(step)?.before)) {
    at(['onDrift'], 'no step makes a write that can be compared with the current values; remove onDrift');
  }
  for (const { message } of expressionProblems(concurrencyKey, beforeSteps(workflow))) at(['concurrencyKey'], message);
  const afterSteps = {
    roots: ROOTS,
    steps: new Set(steps.map(({ id }) => id)),
    inputs: Object.keys(workflow.inputs ?? {}),
  };
  for (const { path, message } of expressionProblems(workflow.outputs, afterSteps)) at(['outputs', ...path], message);
  return problems;
}

export function finalOnlyProblems(workflow: Workflow): Problem[] {
  if (workflow.validation?.mode !== 'final_only') return [];
  const problems: Problem[] = [];
  const mode = ['validation', 'mode'];
  if (workflow.blastRadius !== 'low') {
    problems.push({ path: mode, message: finalOnly(`blastRadius: ${workflow.blastRadius}`) });
  }
  for (const [index, { id, blastRadius = 'low' }] of workflow.steps.entries()) {
    if (blastRadius === 'low') continue;
    problems.push({ path: ['steps', index, 'blastRadius'], message: finalOnly(`"${id}" has ${blastRadius}`) });
  }
  const final = finalWrite(workflow);
  if (toolsAreKnown(workflow) && 'problem' in final) problems.push({ path: mode, message: final.problem });
  return problems;
}

const finalOnly = (but: string) =>
  `final_only requires blast radius low, but ${but}; use per_step, per_phase or critical_only`;

function stepProblems(workflow: Workflow, step: WorkflowStep, index: number): Problem[] {
  const problems: Problem[] = [];
  const at = (path: PropertyKey[], message: string) => problems.push({ path, message });
  const { tool } = step;
  if (workflow.steps.findIndex(({ id }) => id === step.id) < index) {
    at(['id'], `another step has the id "${step.id}"; ids must be unique`);
  }
  const { scope } = step;
  if (scope?.prefix !== undefined) {
    // It was checked when its own workflow was published, but not with the inputs of this call.
    for (const { message } of modelFlowProblems(workflow, index))
      at(['with', 'inputs'], `step "${step.id}": ${message}`);
    return problems;
  }
  // A copy of the step for the first item.
  if (scope?.item && scope.item.position > 0) return problems;
  if (!isTool(tool)) at(['tool'], unknownTool(tool));
  for (const message of needsProblems(workflow, step, index)) at(['needs'], message);
  const operation = findOperation(tool);
  if (operation && step.risk && !atLeast(step.risk, operation.risk)) {
    at(['risk'], `${tool} has risk ${operation.risk}; a step may only increase it`);
  }
  if (step.autoApproveThreshold !== undefined) {
    const unused = unusedThreshold(workflow, step);
    if (unused !== undefined) at(['autoApproveThreshold'], unused);
  }
  if (step.approvers && stepKindOf(tool) && tool !== CALL) {
    at(['approvers'], `${tool} calls no target; use a step with "tool: approval"`);
  }
  const before = stepsBefore(workflow, index);
  const earlier = workflow.steps.filter((_, other) => before.has(other));
  if (step.rollback === 'auto' && isTool(tool) && ![step, ...earlier].some(isReversible)) {
    at(['rollback'], 'neither this step nor an earlier one makes a reversible write; remove rollback');
  }
  const visible: Visible = {
    roots: [...ROOTS, ...(scope?.item ? (['item', 'index'] as const) : [])],
    steps: new Set(earlier.map(({ id }) => id)),
    inputs: Object.keys(workflow.inputs ?? {}),
  };
  for (const field of ['with', 'when', 'confidence', 'message'] as const) {
    for (const { path, message } of expressionProblems(step[field], visible)) at([field, ...path], message);
  }
  for (const { path, message } of modelFlowProblems(workflow, index)) at(path, message);
  for (const { path, message } of waitProblems(workflow, step, earlier)) at(path, message);
  const schema = operation?.input ?? stepKindOf(tool)?.input;
  for (const { path, message } of operation
    ? [...markdownProblems(operation, step.with), ...urlProblems(operation, step.with), ...sessionProblems(step)]
    : []) {
    at(['with', ...path], message);
  }
  const found = new Set(problems.map(({ path }) => path.join('.')));
  for (const { path, message } of schema ? inputProblems(schema, step.with) : []) {
    if (!found.has(['with', ...path].join('.'))) at(['with', ...path], message);
  }
  return problems;
}

const ROOTS = ['trigger', 'enrichment', 'inputs', 'steps', 'run'] as const;

const unknownTool = (tool: string): string =>
  `unknown tool "${tool}"${didYouMean(tool, TOOLS) || `; tools: ${toolsLike(tool).join(', ')}`}`;

/** Steps of a file that name a tool which only expanded workflows have. */
export const internalToolProblems = ({ steps }: Workflow): Problem[] =>
  steps.flatMap(({ tool }, index) =>
    stepKindOf(tool)?.internal ? [{ path: ['steps', index, 'tool'], message: unknownTool(tool) }] : [],
  );

/** Why a step's threshold has no effect. */
function unusedThreshold({ validation }: Workflow, step: WorkflowStep): string | undefined {
  if (validation === undefined) return 'has no effect without a validation mode; set validation.mode';
  if (step.confidence === undefined) return 'has no effect without "confidence"; set "confidence" on this step';
  if (step.critical) return 'a critical step always requires approval; remove "critical" or this threshold';
  if (TOOLS.includes(step.tool) && writeOf(step) === undefined)
    return 'has no effect because this step does not write; remove it';
  return undefined;
}

/** The tools of the same connector, or all. */
function toolsLike(tool: string): string[] {
  const related = TOOLS.filter((each) => connectorOf(each) === connectorOf(tool));
  return related.length > 0 ? related : TOOLS;
}

const LISTED_MAX = 20;

function needsProblems(workflow: Workflow, step: WorkflowStep, index: number): string[] {
  const others = new Set(workflow.steps.map(({ id }) => id).filter((id) => id !== step.id));
  const unknown = (step.needs ?? []).slice(0, NEEDS_MAX).filter((need) => !others.has(need));
  if (unknown.length > 0) {
    const names = [...others];
    const listed = `other steps: ${names.slice(0, LISTED_MAX).join(', ')}${names.length > LISTED_MAX ? ', …' : ''}`;
    const hint = names.length > 0 ? listed : 'there are no other steps, so remove "needs"';
    return unknown.map((need) => `unknown step "${need}"${didYouMean(need, names) || `; ${hint}`}`);
  }
  return needsItself(workflow, index)
    ? [`"${step.id}" indirectly needs itself; remove one "needs" entry of the cycle`]
    : [];
}

function writeOf({ tool }: WorkflowStep): Operation | undefined {
  const operation = findOperation(tool);
  return operation?.effect === 'read' ? undefined : operation;
}

const isReversible = (step: WorkflowStep): boolean => writeOf(step)?.reversible === true;

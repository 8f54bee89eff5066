import { connectorOf, type Operation } from '../../connectors/connector.ts';
import { findOperation, toolNames } from '../../connectors/registry.ts';
import { didYouMean } from '../../entry/did-you-mean.ts';
import { atLeast } from '../../policy/approval-requirement.ts';
import { finalWrite } from '../../policy/gates.ts';
import { APPROVAL_EXPIRES_AFTER_MS } from '../../run/approval.ts';
import { EXPRESSION_MAX_CHARACTERS } from '../expressions/jsonata-syntax.ts';
import { expressionsIn } from '../expressions/template.ts';
import { STEP_KINDS, stepKindOf } from '../step-kinds.ts';
import { needsItself, stepsBefore } from '../step-order.ts';
import { urlProblems } from '../url-template.ts';
import { NEEDS_MAX, STEPS_MAX, type Workflow, type WorkflowStep } from '../workflow.ts';
import { expressionProblems, type Problem, type Visible } from './check-expressions.ts';
import { inputProblems } from './check-input.ts';
import { markdownProblems } from './check-markdown.ts';
import { modelFlowProblems } from './check-model-flow.ts';
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

const TOOLS = [...Object.keys(STEP_KINDS), ...toolNames()];

/** Some checks need to know what every step writes. */
const toolsAreKnown = ({ steps }: Workflow): boolean => steps.every(({ tool }) => TOOLS.includes(tool));

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
  return problems;
}

function finalOnlyProblems(workflow: Workflow): Problem[] {
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
  if (!TOOLS.includes(tool))
    at(['tool'], `unknown tool "${tool}"${didYouMean(tool, TOOLS) || `; tools: ${toolsLike(tool).join(', ')}`}`);
  for (const message of needsProblems(workflow, step, index)) at(['needs'], message);
  const operation = findOperation(tool);
  if (operation && step.risk && !atLeast(step.risk, operation.risk)) {
    at(['risk'], `${tool} has risk ${operation.risk}; a step may only increase it`);
  }
  if (step.autoApproveThreshold !== undefined) {
    const unused = unusedThreshold(workflow, step);
    if (unused !== undefined) at(['autoApproveThreshold'], unused);
  }
  if (step.approvers && stepKindOf(tool)) {
    at(['approvers'], `${tool} calls no target; use a step with "tool: approval"`);
  }
  const before = stepsBefore(workflow, index);
  const earlier = workflow.steps.filter((_, other) => before.has(other));
  if (step.rollback === 'auto' && TOOLS.includes(tool) && ![step, ...earlier].some(isReversible)) {
    at(['rollback'], 'neither this step nor an earlier one makes a reversible write; remove rollback');
  }
  const visible: Visible = {
    roots: ['trigger', 'enrichment', 'inputs', 'steps', 'run'],
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
    ? [...markdownProblems(operation, step.with), ...urlProblems(operation, step.with)]
    : []) {
    at(['with', ...path], message);
  }
  const found = new Set(problems.map(({ path }) => path.join('.')));
  for (const { path, message } of schema ? inputProblems(schema, step.with) : []) {
    if (!found.has(['with', ...path].join('.'))) at(['with', ...path], message);
  }
  return problems;
}

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

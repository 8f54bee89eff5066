import * as z from 'zod';
import { higher } from '../policy/approval-requirement.ts';
import type { Problem } from './checks/check-expressions.ts';
import { inputProblems } from './checks/check-input.ts';
import { inputTemplateProblems } from './inputs.ts';
import type { StepScope } from './step-scope.ts';
import {
  CALL,
  CALLS_DEEP_MAX,
  type CalledWorkflow,
  type PublishedWorkflow,
  STEPS_MAX,
  type Workflow,
  type WorkflowStep,
} from './workflow.ts';

/**
 * A run executes a flat list of steps, each with a fixed index. So a published version contains the steps of its loops and
 * calls, expanded; one run, one chain of commits and one rollback then cover them all.
 *
 *   forEach   x         ->  x__0 (the list), x__1 … x__max (one step for each item; those without an item are skipped), x (the outputs)
 *   a call    x         ->  x__0 (the inputs), x__a, x__b … (the steps of the called workflow), x (its outputs)
 */
export interface Expanded {
  workflow: Workflow;
  /** For each step, the index of the step in the file that it comes from. */
  origins: number[];
  problems: Problem[];
}

export const CallInput = z.strictObject({
  workflow: z.string().describe('the name of a published workflow'),
  version: z
    .int()
    .positive()
    .max(999_999)
    .optional()
    .describe('its version; without one, the newest when this workflow is published'),
  inputs: z.record(z.string(), z.unknown()).default({}).describe('values for its inputs'),
});

/** The published versions that a file calls, by `callKey`. */
export type CalledVersions = ReadonlyMap<
  string,
  { version: number; workflow: PublishedWorkflow } | { problem: string }
>;

/** Without a version, the newest when the caller is published. */
export const callKey = ({ workflow, version }: { workflow: string; version?: number }) =>
  `${workflow}@${version ?? 'newest'}`;

/** What a file calls, as far as it is well-formed. */
export const callsIn = ({ steps }: Workflow): z.infer<typeof CallInput>[] =>
  steps.flatMap(({ tool, with: input }) => (tool === CALL ? (CallInput.safeParse(input).data ?? []) : []));

export function expandWorkflow(file: Workflow, called: CalledVersions): Expanded {
  const expansion = new Expansion(file, called);
  for (const [index, step] of file.steps.entries()) expansion.add(step, index);
  const { steps, origins, problems, calls } = expansion;
  if (steps.length > STEPS_MAX) {
    const message = `with its loops and calls the workflow has ${steps.length} steps; the limit is ${STEPS_MAX}: lower "max", or split it`;
    problems.push({ path: ['steps'], message });
  }
  const workflow = { ...file, steps, ...(calls.size > 0 && { calls: [...calls.values()] }) };
  return { workflow, origins, problems };
}

class Expansion {
  readonly steps: WorkflowStep[] = [];
  readonly origins: number[] = [];
  readonly problems: Problem[] = [];
  readonly calls = new Map<string, CalledWorkflow>();
  readonly #file: Workflow;
  readonly #called: CalledVersions;

  constructor(file: Workflow, called: CalledVersions) {
    this.#file = file;
    this.#called = called;
  }

  add(step: WorkflowStep, origin: number): void {
    const { forEach, ...each } = step;
    if (forEach) this.#addLoop(each, forEach, origin);
    else this.#addOne(each, origin);
  }

  #addOne(step: WorkflowStep, origin: number): void {
    if (step.tool === CALL) this.#addCall(step, origin);
    else this.#push(step, origin);
  }

  #push(step: WorkflowStep, origin: number): void {
    // Far too many: the problem is reported once, without building them all.
    if (this.steps.length <= STEPS_MAX * 2) this.steps.push(step);
    this.origins.push(origin);
  }

  #addLoop(step: WorkflowStep, { items, max }: NonNullable<WorkflowStep['forEach']>, origin: number): void {
    const list = `${step.id}__0`;
    this.#push({ ...plain(list, 'forEach.items', step), with: { items, max } }, origin);
    const ids = Array.from({ length: max }, (_, position) => `${step.id}__${position + 1}`);
    for (const [position, id] of ids.entries()) {
      const needs = step.needs && [position === 0 ? list : (ids[position - 1] as string)];
      this.#addOne({ ...step, id, ...(needs && { needs }), scope: { leader: list, item: { list, position } } }, origin);
    }
    const outputs = ids.map((id) => `{% steps.${id}.output %}`);
    const needs = step.needs && { needs: [ids.at(-1) as string] };
    const collects = { items: `{% steps.${list}.output %}`, outputs };
    this.#push({ ...plain(step.id, 'forEach', step), ...needs, with: collects }, origin);
  }

  #addCall(step: WorkflowStep, origin: number): void {
    const found = this.#resolve(step, origin);
    if (!found) {
      this.#push(step, origin);
      return;
    }
    const { workflow: called, version, inputs } = found;
    const prefix = `${step.id}__`;
    const first = `${prefix}0`;
    const { name, inputs: takes = {} } = called;
    const leads = { ...(step.when && { when: step.when }), ...(step.scope && { scope: step.scope }) };
    this.#push(
      { ...plain(first, 'workflow.inputs', step), ...leads, with: { workflow: name, version, inputs, takes } },
      origin,
    );
    const within = called.steps.map((each, index) => this.#calledStep(step, called, each, index));
    for (const each of within) this.#push(each, origin);
    const scope: StepScope = { prefix, inputs: first, leader: first };
    const needs = step.needs && { needs: [first, ...within.map(({ id }) => id)] };
    this.#push({ ...plain(step.id, CALL, step), ...needs, scope, with: called.outputs ?? {} }, origin);
  }

  /** A step of the called workflow: under its prefix, and with at least the guards that it has in its own workflow. */
  #calledStep(call: WorkflowStep, called: Workflow, step: WorkflowStep, index: number): WorkflowStep {
    const prefix = `${call.id}__`;
    const first = `${prefix}0`;
    const { scope } = step;
    const earlier = called.steps.slice(0, index).map(({ id }) => `${prefix}${id}`);
    const own = step.needs?.map((id) => `${prefix}${id}`) ?? (call.needs && earlier);
    const rollsBack = called.onFailure === 'rollback' || call.rollback === 'auto';
    return {
      ...step,
      ...(rollsBack && { rollback: 'auto' as const }),
      ...(call.dedupeScope === 'run' && { dedupeScope: 'run' as const }),
      id: `${prefix}${step.id}`,
      ...(own && { needs: own.length > 0 ? own : [first] }),
      blastRadius: higher(step.blastRadius ?? called.blastRadius, call.blastRadius ?? this.#file.blastRadius),
      phase: call.phase === 'main' ? step.phase : call.phase,
      critical: call.critical || step.critical,
      scope: {
        prefix: `${prefix}${scope?.prefix ?? ''}`,
        inputs: scope?.inputs === undefined ? first : `${prefix}${scope.inputs}`,
        ...(scope?.item && { item: { ...scope.item, list: `${prefix}${scope.item.list}` } }),
        leader: scope === undefined ? first : `${prefix}${scope.leader}`,
      },
    };
  }

  /** The called version, or nothing if the call has a problem. */
  #resolve(step: WorkflowStep, origin: number) {
    const before = this.problems.length;
    const at = (path: PropertyKey[], message: string) => this.#problem(['steps', origin, ...path], message);
    for (const { path, message } of inputProblems(CallInput, step.with)) at(['with', ...path], message);
    for (const field of NOT_FOR_CALLS) {
      if (step[field] !== undefined) at([field], `a call has no ${field}; set it on the steps of the called workflow`);
    }
    const call = CallInput.safeParse(step.with).data;
    if (!call) return undefined;
    if (call.workflow.includes('{%'))
      at(['with', 'workflow'], 'must be constant: the version is fixed when this workflow is published');
    else {
      const found = this.#called.get(callKey(call)) ?? { problem: NOT_LOOKED_UP };
      if ('problem' in found) at(['with', 'workflow'], found.problem);
      else {
        for (const message of this.#weakened(found.workflow)) at(['with', 'workflow'], message);
        for (const { path, message } of inputTemplateProblems(found.workflow, call.inputs, { complete: true })) {
          at(['with', 'inputs', ...path], message);
        }
        if (this.problems.length === before) {
          this.#note(found);
          return { ...found, inputs: call.inputs };
        }
      }
    }
    return undefined;
  }

  /** A call must not remove a guard that the called workflow has. */
  #weakened(called: PublishedWorkflow): string[] {
    const { name, validation, onDrift, concurrencyKey } = this.#file;
    const callsItself = called.name === name || called.calls?.some((each) => each.name === name);
    const deep = 1 + Math.max(0, ...(called.calls ?? []).map(({ depth }) => depth));
    return [
      callsItself && `"${called.name}" is or calls "${name}"; a workflow must not call itself`,
      deep > CALLS_DEEP_MAX && `calls are nested ${deep} deep; the limit is ${CALLS_DEEP_MAX}`,
      called.validation &&
        called.validation.mode !== validation?.mode &&
        `"${called.name}" has validation.mode ${called.validation.mode}; set the same mode in this workflow`,
      called.onDrift === 'refuse' &&
        onDrift !== 'refuse' &&
        `"${called.name}" has onDrift: refuse; set it in this workflow too`,
      called.concurrencyKey !== undefined &&
        concurrencyKey === undefined &&
        `"${called.name}" has a concurrencyKey, which a call does not take; set one in this workflow`,
    ].filter((message) => typeof message === 'string');
  }

  #note({ version, workflow }: { version: number; workflow: PublishedWorkflow }): void {
    const depth = 1 + Math.max(0, ...(workflow.calls ?? []).map((each) => each.depth));
    const { name, author } = workflow;
    for (const each of [{ name, version, depth, ...(author !== undefined && { author }) }, ...(workflow.calls ?? [])]) {
      this.calls.set(`${each.name}@${each.version}`, each);
    }
  }

  /** Once for a step that is expanded several times. */
  #problem(path: PropertyKey[], message: string): void {
    const same = (other: Problem) => other.message === message && other.path.join('.') === path.join('.');
    if (!this.problems.some(same)) this.problems.push({ path, message });
  }
}

const NOT_FOR_CALLS = ['risk', 'approvers', 'confidence', 'autoApproveThreshold', 'message', 'retry'] as const;
export const NOT_LOOKED_UP =
  'the called workflow is not known here; put its file next to this one, or check on a stage';

/** A step that calls nothing, with the order and phase of the step that it belongs to. */
function plain(id: string, tool: string, { needs, phase }: WorkflowStep): WorkflowStep {
  const defaults = { critical: false, rollback: 'none', dedupeScope: 'tenant' } as const;
  return { id, tool, with: {}, ...defaults, phase, ...(needs && { needs }) };
}

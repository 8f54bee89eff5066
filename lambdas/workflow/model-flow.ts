import type { Operation } from '../connectors/connector.ts';
import { findOperation } from '../connectors/registry.ts';
import { asChoice, combined, type Derived, derivedTemplate, type Origin } from './expressions/derived-values.ts';
import type { Reference } from './expressions/references.ts';
import { textsIn } from './expressions/template.ts';
import { stepKindOf } from './step-kinds.ts';
import { inOrder } from './step-order.ts';
import { type StepScope, stepsRead } from './step-scope.ts';
import type { Workflow, WorkflowStep } from './workflow.ts';

/** A field that determines the target or the approvers, and whose value derives from a model. */
export interface DerivedTarget extends Derived {
  /** `channel`, `fields.assigned_to`; `when` if a model decides whether the step writes. */
  field: string;
}

interface PlacedTarget extends DerivedTarget {
  path: PropertyKey[];
}

const known = new WeakMap<Workflow, ReadonlyMap<number, PlacedTarget[]>>();

/** For each step, the fields that determine the target or the approvers and derive from a model. */
export function modelTargets(workflow: Workflow): ReadonlyMap<number, PlacedTarget[]> {
  const found = known.get(workflow) ?? followed(workflow);
  known.set(workflow, found);
  return found;
}

export const derivedTargets = (workflow: Workflow, index: number): DerivedTarget[] =>
  workflow.steps[index]?.action?.derived ??
  (modelTargets(workflow).get(index) ?? []).map(({ field, how, from }) => ({ field, how, from }));

type Output = (path: Reference) => Derived | undefined;

function followed(workflow: Workflow): ReadonlyMap<number, PlacedTarget[]> {
  const targets = new Map<number, PlacedTarget[]>();
  if (!workflow.steps.some(({ tool }) => findOperation(tool)?.asksModel)) return targets;
  const outputs = new Map<string, Output>();
  /** Whether a model decides that a step runs. */
  const conditions = new Map<string, Derived | undefined>();
  const originIn =
    (scope: StepScope | undefined): Origin =>
    (reference) => {
      const [id] = stepsRead(reference, scope);
      if (reference[0] !== undefined && reference[0] !== 'steps') {
        return id === undefined ? undefined : outputs.get(id)?.(reference.slice(1));
      }
      // The step is only known at run time.
      if (id === undefined) return asChoice(combined([...outputs.values()].map((each) => each([]))));
      return outputs.get(id)?.(reference.slice(3));
    };
  for (const index of inOrder(workflow)) {
    const step = workflow.steps[index] as WorkflowStep;
    const { scope } = step;
    const origin = originIn(scope);
    const when = asChoice(
      combined([
        derivedTemplate(step.when, origin),
        // The length of the list decides how often the step runs.
        scope?.item && outputs.get(scope.item.list)?.([]),
        scope && conditions.get(scope.leader),
      ]),
    );
    conditions.set(step.id, when);
    const picked = targetsOf(step, origin);
    const writes = (findOperation(step.tool)?.effect ?? 'read') !== 'read';
    const decided = when && writes ? [{ field: 'when', path: ['when'], ...when }] : [];
    if (picked.length + decided.length > 0) targets.set(index, [...picked, ...decided]);
    outputs.set(step.id, remembered(outputOf(step, origin, when, picked)));
  }
  return targets;
}

/** Caches the result for each path: many steps may use the same output. */
function remembered(output: Output): Output {
  const followedPaths = new Map<string, Derived | undefined>();
  return (path) => {
    const key = JSON.stringify(path);
    if (!followedPaths.has(key)) followedPaths.set(key, output(path));
    return followedPaths.get(key);
  };
}

function targetsOf({ tool, with: input }: WorkflowStep, origin: Origin): PlacedTarget[] {
  const operation = findOperation(tool);
  const kind = stepKindOf(tool);
  if (kind?.passesOn) return [];
  const content = operation?.content ?? kind?.contentFields ?? [];
  return textsIn(input).flatMap(({ path, text, isName }) => {
    const derived = isName ? undefined : derivedTemplate(text, origin);
    const field = path.filter((part) => typeof part === 'string').join('.');
    const inRecipients = (operation?.recipients ?? []).filter((each) => isWithin(field, each) || isWithin(each, field));
    if (!derived || (content.some((each) => isWithin(field, each)) && inRecipients.length === 0)) return [];
    // Whether the object contains a recipient is only known at run time.
    const perhaps = inRecipients.length > 0 && !inRecipients.some((each) => isWithin(field, each));
    return [{ field, path: ['with', ...path], ...((perhaps ? asChoice(derived) : derived) as Derived) }];
  });
}

/** `fields.assigned_to` is within `fields`, and within itself. */
const isWithin = (field: string, whole: string) => field === whole || field.startsWith(`${whole}.`);

/** How the output of a step derives from a model. */
function outputOf(
  { id, tool, with: input }: WorkflowStep,
  origin: Origin,
  when: Derived | undefined,
  picked: readonly Derived[],
): Output {
  const operation = findOperation(tool);
  if (operation?.asksModel) return () => ({ how: 'carried', from: [id] });
  const passesOn = stepKindOf(tool)?.passesOn;
  if (passesOn) {
    const passed = passesOn === 'input' ? input : input[passesOn.field];
    return (path) => combined([when, derivedTemplate(passed, origin, path)]);
  }
  const fixed = combined([when, ...(operation ? dependsOnResponse(operation, input, origin, picked) : [])]);
  return () => fixed;
}

/** A response depends on the target and on the sent input, unless it contains only ids. */
function dependsOnResponse(operation: Operation, input: unknown, origin: Origin, picked: readonly Derived[]) {
  return operation.returnsOnlyIds ? picked : [derivedTemplate(input, origin)];
}

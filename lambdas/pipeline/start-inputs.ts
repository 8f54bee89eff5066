import type { Trigger } from '../run/run.ts';
import { render, type Scope } from '../workflow/expressions/expressions.ts';
import { checkedInputs, type InputValues } from '../workflow/inputs.ts';
import type { Workflow } from '../workflow/workflow.ts';
import { triggerView } from './match-automations.ts';

export interface StartInputs {
  /** Values of the person or program that starts the run. They are data: never evaluated, and they win over `from`. */
  given?: InputValues;
  /** Templates of the automation over `trigger`. */
  from?: Record<string, unknown>;
}

/**
 * The inputs of a run: the given values, the values of the automation, and the defaults of the workflow. Nothing for a
 * workflow without inputs. Throws INPUT_INVALID if a required input is missing or a value does not fit.
 */
export async function startInputs(
  scope: Omit<Scope, 'context'>,
  workflow: Pick<Workflow, 'name' | 'inputs'>,
  trigger: Trigger,
  { given, from }: StartInputs = {},
): Promise<InputValues | undefined> {
  if (!workflow.inputs && !given && !from) return undefined;
  const context = { trigger: triggerView(trigger) };
  const mapped = from ? ((await render({ ...scope, context }, from, 'in_text')) as InputValues) : {};
  return checkedInputs(workflow, { ...mapped, ...given });
}

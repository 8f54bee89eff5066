import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import { inputFlaws } from '../run/input-flaws.ts';
import type { RunDraft } from '../run/run-draft.ts';
import type { StepFacts } from '../run/step.ts';
import { makersOf } from '../worker/govern.ts';
import type { RunState, Worker } from '../worker/worker.ts';
import { GateInput } from '../workflow/inner-tools.ts';
import { openGate } from './open-gate.ts';

/** An `approval` step: a gate the workflow itself asks for, whatever comes after it. */
export async function askPeople(
  worker: Worker,
  state: RunState,
  draft: RunDraft,
  step: StepFacts,
  input: unknown,
): Promise<void> {
  const parsed = GateInput.safeParse(input);
  if (!parsed.success) throw new CountersignError('INPUT_INVALID', `approval: ${inputFlaws(parsed.error)}`);
  const { message, ...requirement } = parsed.data;
  const { workflow } = draft.run;
  openGate(state, draft, {
    step,
    asks: 'step',
    actionHash: hashOf(JSON.parse(JSON.stringify({ step: step.id, input: parsed.data, workflow }))),
    requirement,
    grounds: { policyHash: '', policies: [], reasons: ['the workflow asks for it'] },
    makers: await makersOf(worker, state, draft),
    environment: worker.environment,
    ...(message !== undefined && { message }),
  });
}

import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { TouchedState } from '../run/receipt.ts';
import type { Trigger } from '../run/run.ts';
import type { StepFacts } from '../run/step.ts';
import type { ProposedCall } from './propose-call.ts';

const drifted = (id: string, what: string) =>
  new CountersignError(
    'PLAN_DRIFTED',
    `step ${id}: ${what}; nothing was written. Simulate again, and apply the new plan`,
  );

/**
 * A run that applies a plan makes only the writes that the plan showed. Returns the values that the target must still have.
 * An undo is not a write of the plan: it restores what the run has changed.
 */
export function checkPlanned(
  trigger: Pick<Trigger, 'plan'>,
  step: StepFacts,
  call: ProposedCall,
): { expects?: TouchedState } {
  const difference = differenceFromPlan(trigger, step, call);
  if (difference !== undefined) throw drifted(step.id, difference);
  const before = appliesPlan(step, call)
    ? trigger.plan?.writes.find((write) => write.step === step.id)?.before
    : undefined;
  return before ? { expects: before } : {};
}

const appliesPlan = ({ undoes }: StepFacts, { operation }: ProposedCall) =>
  undoes === undefined && operation.effect !== 'read';

/** How a write differs from the plan that its run applies; undefined if the plan showed it, or there is none. */
export function differenceFromPlan(
  { plan }: Pick<Trigger, 'plan'>,
  step: StepFacts,
  call: ProposedCall,
): string | undefined {
  if (!plan || !appliesPlan(step, call)) return undefined;
  const { operation, proposal } = call;
  const planned = plan.writes.find((write) => write.step === step.id);
  if (!planned) return 'the plan has no write of this step';
  if (planned.tool !== operation.tool || planned.target !== proposal.target) {
    return `the plan showed a write to ${planned.target}, the run would write to ${proposal.target}`;
  }
  const fields = JSON.parse(JSON.stringify(proposal.fields)) as Record<string, unknown>;
  const names = [...new Set([...Object.keys(planned.fields), ...Object.keys(fields)])];
  const differing = names.find((name) => {
    const shown = planned.fields[name];
    return shown === undefined || !(name in fields) || (shown !== null && shown !== hashOf(fields[name] ?? null));
  });
  return differing === undefined ? undefined : `the plan showed another value for ${differing}`;
}

/** The policies that allowed the plan must be those that allow the write. */
export function checkPolicies({ plan }: Pick<Trigger, 'plan'>, { id, governed, undoes }: StepFacts): void {
  if (!plan || undoes !== undefined || !governed) return;
  if (!plan.policyHashes.includes(governed.decision.policyHash))
    throw drifted(id, 'the policies changed since the plan');
}

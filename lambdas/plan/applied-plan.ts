import { KNOWN_AFTER_APPLY } from '../proposal/known-after-apply.ts';
import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { AppliedPlan, PlannedWrite } from '../run/run.ts';
import type { Plan } from './plan.ts';

/** What a run that applies a plan may write. Throws if the plan does not say enough to notice a difference. */
export function appliedPlan({ planHash, outcome, steps }: Plan): AppliedPlan {
  if (outcome === 'fails' || outcome === 'denied') {
    const why = outcome === 'fails' ? 'its run would fail' : 'policy denies one of its writes';
    throw new CountersignError('PLAN_DRIFTED', `this plan cannot be applied: ${why}`);
  }
  const policies = new Set<string>();
  const writes: PlannedWrite[] = [];
  for (const step of steps) {
    if (step.kind !== 'call' || !step.reached) continue;
    policies.add(step.decision.policyHash);
    if (step.effect === 'read') continue;
    const { id, tool, target, fields, provisional, before, unread } = step;
    if (unread !== null || target.includes(KNOWN_AFTER_APPLY.shown)) {
      const why = unread ?? 'its target is known only when the run reaches it';
      throw new CountersignError(
        'PLAN_DRIFTED',
        `this plan cannot be applied: step ${id}: ${why}, so a change of the target could not be detected`,
      );
    }
    writes.push({ step: id, tool, target, fields: hashed(fields, provisional), ...(before && { before }) });
  }
  return { planHash, policyHashes: [...policies], writes };
}

/** A field that is known only after apply may have any value; the others have the value that the plan showed. */
function hashed(fields: Record<string, unknown>, provisional: boolean): Record<string, string | null> {
  const isUnknown = (value: unknown) => provisional && JSON.stringify(value ?? null).includes(KNOWN_AFTER_APPLY.shown);
  const entries = Object.entries(JSON.parse(JSON.stringify(fields)) as Record<string, unknown>);
  return Object.fromEntries(entries.map(([name, value]) => [name, isUnknown(value) ? null : hashOf(value ?? null)]));
}

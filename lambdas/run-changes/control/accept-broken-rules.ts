import { CountersignError } from '../../run/errors.ts';
import { isTerminal, type Run } from '../../run/run.ts';
import { annotateRun } from '../change-run.ts';
import type { RunChanger } from '../run-changer.ts';

export interface AcceptedRules {
  rules: number[];
  reason: string;
}

/**
 * An owner accepts that an ended run broke rules. The sealer refuses to sign such a run; after this commit it signs the
 * bundle as one that broke these rules, and the commit as an addendum that says who accepted it and why.
 */
export async function acceptBrokenRules(
  changer: RunChanger,
  target: { tenant: string; runId: string },
  { rules, reason }: AcceptedRules,
  actor: string,
): Promise<Run> {
  const { run } = await annotateRun(changer, target, async ({ run: before }, draft) => {
    const { status, runId, tenant, brokenRulesAccepted } = before;
    if (!isTerminal(before)) {
      throw new CountersignError('RUN_INVALID_TRANSITION', `the run is ${status}; only an ended run is sealed`);
    }
    const all = [...new Set([...(brokenRulesAccepted?.rules ?? []), ...rules])].sort((a, b) => a - b);
    if (brokenRulesAccepted?.rules.length === all.length) return undefined;
    if (await changer.runs.evidence(tenant, runId)) {
      throw new CountersignError('CONFLICT', 'the evidence of the run is sealed already; there is nothing to accept');
    }
    draft
      .note({ brokenRulesAccepted: { rules: all, actor, at: draft.at } })
      .record({ type: 'run.broken_rules_accepted', rules: all, actor, reason });
    return {};
  });
  return run;
}

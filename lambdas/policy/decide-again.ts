import { isDeepStrictEqual } from 'node:util';
import type { EvidenceDocument } from '../evidence/bundle/document.ts';
import type { EvidenceValues } from '../evidence/verify/open-values.ts';
import { hashOf } from '../run/canonical-json.ts';
import { requestHash } from '../run/digest.ts';
import { groupsInOrder } from './approval-requirement.ts';
import type { PolicyDecision, PolicyRequest } from './policy.ts';
import type { PreparedPolicies } from './policy-engine.ts';

export interface DecidedAgain {
  /** Steps whose last decision is the same. */
  same: string[];
  different: { step: string; problem: string }[];
  notCheckable: { step: string; reason: string }[];
}

interface StepValues {
  index?: number;
  request?: Omit<PolicyRequest, 'action'>;
  action?: PolicyRequest['action'];
}

type DecidedEvent = EvidenceDocument['commits'][number]['events'][number];

/**
 * Makes the last decision on each step again, from its recorded request and the stored text of its policies. `policiesOf`
 * returns undefined if there is no such text.
 */
export async function decideAgain(
  { commits }: Pick<EvidenceDocument, 'commits'>,
  values: EvidenceValues,
  policiesOf: (hash: string) => Promise<PreparedPolicies | undefined>,
): Promise<DecidedAgain> {
  const found: DecidedAgain = { same: [], different: [], notCheckable: [] };
  const byIndex = new Map(((values.steps ?? []) as StepValues[]).map((each) => [each.index, each]));
  const { salt } = Object(values.run) as { salt?: string };
  for (const event of lastDecisions(commits)) {
    const step = String(event.step);
    const { request, action } = byIndex.get(Number(event.index)) ?? {};
    if (event.message !== undefined) {
      found.notCheckable.push({ step, reason: 'policy could not decide' });
    } else if (!request || !action) {
      found.notCheckable.push({ step, reason: 'its request is not in the values' });
    } else if (event.fields === undefined) {
      found.notCheckable.push({ step, reason: 'an earlier version recorded the decision, without digests' });
    } else if (!isRequestOf(event, action, salt)) {
      found.different.push({ step, problem: 'the request in the values is not the one on which policy decided' });
    } else {
      const policies = await policiesOf(String(event.policyHash));
      if (!policies) found.notCheckable.push({ step, reason: `there is no text ${event.policyHash}` });
      else {
        const problem = differenceTo(event, await policies.decide({ ...request, action }));
        if (problem === undefined) found.same.push(step);
        else found.different.push({ step, problem });
      }
    }
  }
  return found;
}

function lastDecisions(commits: EvidenceDocument['commits']): DecidedEvent[] {
  const events = commits.flatMap((commit) => commit.events).filter(({ type }) => type === 'policy.decided');
  return [...new Map(events.map((event) => [event.index, event])).values()];
}

/** The written values have the digests of the decision, and the action has its facts. */
function isRequestOf(event: DecidedEvent, action: PolicyRequest['action'], salt: string | undefined): boolean {
  const facts = { ...Object(event.action), tool: event.tool, target: event.target };
  const shown = action as unknown as Record<string, unknown>;
  return (
    Object.entries(facts).every(([name, value]) => isDeepStrictEqual(shown[name], value)) &&
    hashOf(event.fields) === requestHash(action.fields, salt)
  );
}

function differenceTo(event: DecidedEvent, again: PolicyDecision): string | undefined {
  const recorded = termsOf(event.verdict, event.policyHash, event.policies, event);
  const { verdict, policyHash, policies } = again;
  const decided = termsOf(verdict, policyHash, policies, 'requirement' in again ? again.requirement : {});
  const name = Object.keys(recorded).find((each) => !isDeepStrictEqual(Object(recorded)[each], Object(decided)[each]));
  if (name === undefined) return undefined;
  const shown = (value: unknown) => JSON.stringify(Object(value)[name]) ?? 'none';
  return `${name} was ${shown(recorded)}; the policies of that time decide ${shown(decided)}`;
}

function termsOf(verdict: unknown, policyHash: unknown, policies: unknown, terms: object) {
  const { tier, quorum, groups } = terms as { tier?: unknown; quorum?: unknown; groups?: string[][] };
  const inOrder = groups && groups.length > 0 ? groupsInOrder(groups) : undefined;
  return { verdict, policyHash, policies, tier, quorum, groups: inOrder };
}

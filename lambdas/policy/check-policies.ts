import { RISKS } from '../connectors/connector.ts';
import { InvalidPolicies, type PolicyEngines, prepare } from './engine.ts';
import type { PolicyRequest, ProposedAction, TenantPolicies } from './policy.ts';

export type CheckedPolicies = { hash: string } | { problems: readonly string[] };

/** Whether policies may be published: they are read, nothing in them is odd, and they decide what is put to them. */
export async function checkPolicies(engines: PolicyEngines, policies: TenantPolicies): Promise<CheckedPolicies> {
  try {
    const set = await prepare(engines, policies);
    const problems = [...set.warnings];
    for (const request of TRIALS) {
      const { risk, effect } = request.action;
      const decide = async () => set.decide(request);
      await decide().catch((error: unknown) => problems.push(`a ${risk} risk ${effect} cannot be decided: ${error}`));
    }
    return problems.length > 0 ? { problems } : { hash: set.hash };
  } catch (error) {
    if (error instanceof InvalidPolicies) return { problems: error.problems };
    throw error;
  }
}

/** Plain requests that every set of policies must have an answer to. */
const TRIALS: readonly PolicyRequest[] = (['read', 'natural', 'opaque'] as const).flatMap((effect) =>
  RISKS.map((risk) => trial({ effect, risk })),
);

function trial(action: Pick<ProposedAction, 'effect' | 'risk'>): PolicyRequest {
  return {
    tenant: 'trial',
    automation: 'trial',
    workspace: 'default',
    workflow: { name: 'trial', version: 1 },
    source: 'github',
    writesBefore: 0,
    action: {
      tool: 'github.labels.add',
      connector: 'github',
      instance: 'trial',
      target: 'github:trial:issue:1',
      fields: { labels: ['triage'] },
      blastRadius: 'low',
      environment: 'dev',
      destructive: false,
      reversible: true,
      undo: false,
      makers: [],
      ...action,
    },
  };
}

import { connectorOf, RISKS } from '../connectors/connector.ts';
import { didYouMean } from '../entry/did-you-mean.ts';
import type { PolicyRequest, ProposedAction, TenantPolicies } from './policy.ts';
import { InvalidPolicies, type Mention, type PolicyEngines, prepare } from './policy-engine.ts';

export interface SoundPolicies {
  hash: string;
  /** The ids of the tenant's policies. */
  policies: readonly string[];
}

export type CheckedPolicies = SoundPolicies | { problems: readonly string[] };

/**
 * Whether policies may be published: they must parse without warnings, name only existing tools and connectors, and decide
 * some typical requests. `tools` are all tools.
 */
export async function checkPolicies(
  engines: PolicyEngines,
  policies: TenantPolicies,
  tools: readonly string[],
): Promise<CheckedPolicies> {
  try {
    const set = await prepare(engines, policies);
    const problems = [...set.warnings, ...set.mentions.flatMap((mention) => unknownName(mention, tools))];
    for (const request of SAMPLES) {
      const { risk, effect } = request.action;
      const decide = async () => set.decide(request);
      await decide().catch((error: unknown) =>
        problems.push(
          `the policies cannot decide a ${risk}-risk ${effect === 'read' ? 'read' : 'write'}: ${error instanceof Error ? error.message : error}`,
        ),
      );
    }
    return problems.length > 0 ? { problems: [...new Set(problems)] } : { hash: set.hash, policies: set.ids };
  } catch (error) {
    if (error instanceof InvalidPolicies) return { problems: error.problems };
    throw error;
  }
}

/** A misspelt name matches nothing, so a forbid with it would forbid nothing. */
function unknownName({ kind, id, place }: Mention, tools: readonly string[]): string[] {
  const connectors = [...new Set(tools.map(connectorOf))];
  if ((kind === 'Operation' ? tools : connectors).includes(id)) return [];
  const ofConnector = tools.filter((tool) => connectorOf(tool) === connectorOf(id));
  const [thing, there] =
    kind === 'Connector' ? ['connector', connectors] : ['tool', ofConnector.length > 0 ? ofConnector : tools];
  return [`${place}: unknown ${thing} "${id}"${didYouMean(id, there) || `; known: ${there.join(', ')}`}`];
}

/** Typical requests that every policy set must decide. */
const SAMPLES: readonly PolicyRequest[] = (['read', 'natural', 'opaque'] as const).flatMap((effect) =>
  RISKS.map((risk) => sampleRequest({ effect, risk })),
);

/** A request of an invented run, in which only effect and risk differ. */
export function sampleRequest(action: Pick<ProposedAction, 'effect' | 'risk'>): PolicyRequest {
  return {
    tenant: 'sample',
    automation: 'sample',
    workspace: 'default',
    workflow: { name: 'sample', version: 1 },
    source: 'github',
    writesBefore: 0,
    at: '2026-01-07T12:00:00.000Z',
    trigger: { event: 'issues.opened' },
    action: {
      tool: 'github.labels.add',
      connector: 'github',
      instance: 'sample',
      target: 'github:sample:issue:1',
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

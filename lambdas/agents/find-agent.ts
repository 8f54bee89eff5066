import type { Agent } from './agent.ts';
import type { AgentRegistry } from './agent-registry.ts';
import { byRank, type CommandNeeds, isBest, rankOf, selectAgent, whyNobody } from './select-agent.ts';

/** A row has about a KB, and DynamoDB charges for each 4 KB that are read. */
export const AGENTS_OF_A_PAGE = 50;

interface Search {
  at: string;
  /** Agents that were tried for this step. */
  tried: readonly string[];
  random: () => number;
  /** Begin after this agent: agents share the work, and no search begins with the same ones. */
  after?: string;
}

export type Found = { agent: Agent } | { agent: undefined; reason: string };

/**
 * The agent that `selectAgent` prefers. Reads the agents of a tenant page by page, and no further than to one that no other
 * agent is preferred to. So with many agents, most searches read one page; one for which nobody is available reads all.
 */
export async function findAgent(
  registry: Pick<AgentRegistry, 'agents'>,
  tenant: string,
  needs: CommandNeeds,
  search: Search,
): Promise<Found> {
  const read: Agent[] = [];
  let best: Agent | undefined;
  for await (const page of pagesAfter(registry, tenant, search.after)) {
    read.push(...page);
    best = preferred(best, selectAgent(page, needs, search), search);
    if (best && isBest(rankOf(best, search))) break;
  }
  return best ? { agent: best } : { agent: undefined, reason: whyNobody(read, needs, search.at) };
}

function preferred(one: Agent | undefined, other: Agent | undefined, search: Search): Agent | undefined {
  if (!one || !other) return one ?? other;
  return byRank(rankOf(one, search), rankOf(other, search)) <= 0 ? one : other;
}

/** All pages: those after the agent, then those from the first one up to it. */
async function* pagesAfter(
  registry: Pick<AgentRegistry, 'agents'>,
  tenant: string,
  start: string | undefined,
): AsyncGenerator<Agent[]> {
  yield* pagesFrom(registry, tenant, start);
  if (start === undefined) return;
  for await (const page of pagesFrom(registry, tenant, undefined)) {
    const upTo = page.filter(({ agentId }) => agentId <= start);
    yield upTo;
    if (upTo.length < page.length) return;
  }
}

async function* pagesFrom(
  registry: Pick<AgentRegistry, 'agents'>,
  tenant: string,
  start: string | undefined,
): AsyncGenerator<Agent[]> {
  for (let after = start; ; ) {
    const page = await registry.agents(tenant, { limit: AGENTS_OF_A_PAGE, ...(after !== undefined && { after }) });
    yield page;
    if (page.length < AGENTS_OF_A_PAGE) return;
    after = page.at(-1)?.agentId;
  }
}

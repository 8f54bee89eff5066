import type { Agent } from './agent.ts';
import type { Assignment, AssignmentPlace } from './assignment.ts';

/** The agents of a tenant and the assignments that were offered to them. */
export interface AgentRegistry {
  /** By id, after the id `after`. */
  agents(tenant: string, page: { after?: string; limit: number }): Promise<Agent[]>;
  agent(tenant: string, agentId: string): Promise<Agent | undefined>;
  /** False if the agent exists. */
  create(agent: Agent): Promise<boolean>;
  /** Replaces the agent that was read, with the next revision. False if it was changed or deleted since. */
  update(read: Agent, agent: Agent): Promise<boolean>;
  /** False if it was changed or deleted since. */
  delete(read: Agent): Promise<boolean>;
  /**
   * Offers an assignment: stores it and gives it a slot of the agent, both or none. False if the agent was changed since
   * it was read, or this claim already has an assignment.
   */
  offer(assignment: Assignment, read: Agent, agent: Agent): Promise<boolean>;
  assignment(tenant: string, place: AssignmentPlace): Promise<Assignment | undefined>;
}

/** Asks an agent to sync now. Only a hint: an agent acts on responses to its own requests, and syncs anyway. */
export interface AgentHints {
  syncNow(tenant: string, agentId: string): Promise<void>;
}

/** For a stage without a socket. */
export const noHints: AgentHints = { syncNow: async () => undefined };

/** All agents of a tenant. A page is one request. */
export async function allAgents(registry: Pick<AgentRegistry, 'agents'>, tenant: string): Promise<Agent[]> {
  const found: Agent[] = [];
  for (let after: string | undefined; ; ) {
    const page = await registry.agents(tenant, { limit: AGENTS_READ_AT_ONCE, ...(after !== undefined && { after }) });
    found.push(...page);
    after = page.at(-1)?.agentId;
    if (page.length < AGENTS_READ_AT_ONCE) return found;
  }
}
const AGENTS_READ_AT_ONCE = 500;

import type { Agent } from '../../../lambdas/agents/agent.ts';
import type { AgentRegistry } from '../../../lambdas/agents/agent-registry.ts';
import type { Assignment, AssignmentPlace } from '../../../lambdas/agents/assignment.ts';
import { type Passage, undisturbed } from '../passage.ts';
import { MemoryRows, transact, write } from './memory-rows.ts';

const runOf = (tenant: string, runId: string) => `${tenant}/${runId}`;
const padded = (value: number) => String(value).padStart(6, '0');
const isNew = (current: unknown) => current === undefined;
const next = (read: Agent, agent: Agent): Agent => ({ ...agent, revision: read.revision + 1 });

export const assignmentRow = ({ tenant, runId, stepIndex, leaseVersion }: AssignmentPlace & { tenant: string }) =>
  [runOf(tenant, runId), `${padded(stepIndex)}#${padded(leaseVersion)}`] as const;

/** Agents and assignments without DynamoDB. Commits of runs change `assignments`, too. */
export class MemoryAgents implements AgentRegistry {
  readonly #agents = new MemoryRows<Agent>();
  readonly assignments = new MemoryRows<Assignment>();
  readonly #passage: Passage;

  constructor(passage: Passage = undisturbed) {
    this.#passage = passage;
  }

  /** Without a port, for what is not part of a test. */
  put(agent: Agent): void {
    this.#agents.set(agent.tenant, agent.agentId, agent);
  }

  /** An agent synced, and nothing else of its row changed. */
  touch({ tenant, agentId }: Pick<Agent, 'tenant' | 'agentId'>, lastSyncAt: string): void {
    const row = this.#agents.peek(tenant, agentId);
    if (row) this.put({ ...row, lastSyncAt });
  }

  peek({ tenant, agentId }: Pick<Agent, 'tenant' | 'agentId'>): Agent | undefined {
    return this.#agents.peek(tenant, agentId);
  }

  peekAssignment(tenant: string, place: AssignmentPlace): Assignment | undefined {
    return this.assignments.peek(...assignmentRow({ tenant, ...place }));
  }

  readonly inside = {
    agents: () => this.#agents.peekAll(),
    assignments: () => this.assignments.peekAll(),
  };

  agents(tenant: string, { after = '', limit }: { after?: string; limit: number }): Promise<Agent[]> {
    return this.#passage('agents', async () =>
      this.#agents
        .inPartition(tenant)
        .filter(({ agentId }) => agentId > after)
        .slice(0, limit),
    );
  }

  agent(tenant: string, agentId: string): Promise<Agent | undefined> {
    return this.#passage('agent', async () => this.#agents.get(tenant, agentId));
  }

  create(agent: Agent): Promise<boolean> {
    return this.#passage('createAgent', async () => {
      if (this.#agents.peek(agent.tenant, agent.agentId)) return false;
      this.#agents.set(agent.tenant, agent.agentId, agent);
      return true;
    });
  }

  update(read: Agent, agent: Agent): Promise<boolean> {
    return this.#passage('updateAgent', async () => !transact([this.#replace(read, next(read, agent))]));
  }

  delete(read: Agent): Promise<boolean> {
    return this.#passage('deleteAgent', async () => !transact([this.#replace(read, undefined)]));
  }

  offer(assignment: Assignment, read: Agent, agent: Agent): Promise<boolean> {
    return this.#passage(
      'offer',
      async () =>
        !transact([
          write(this.assignments, assignmentRow(assignment), assignment, isNew),
          this.#replace(read, next(read, agent)),
        ]) || this.assignments.peek(...assignmentRow(assignment))?.statementHash === assignment.statementHash,
    );
  }

  assignment(tenant: string, place: AssignmentPlace): Promise<Assignment | undefined> {
    return this.#passage('assignment', async () => this.assignments.get(...assignmentRow({ tenant, ...place })));
  }

  #replace({ tenant, agentId, revision }: Agent, agent: Agent | undefined) {
    return write(this.#agents, [tenant, agentId], agent, (now) => now?.revision === revision);
  }
}

import type { Agent } from '../../../lambdas/agents/agent.ts';
import type { AgentChanges } from '../../../lambdas/api/agents/agent-changes.ts';
import type { EnrolmentToken } from '../../../lambdas/api/agents/enrolment-token.ts';
import { type Change, type ChangeAuthor, recorded } from '../../../lambdas/pipeline/definition-changes.ts';
import type { MemoryAgents } from './memory-agents.ts';
import { MemoryRows } from './memory-rows.ts';

export class MemoryAgentChanges implements AgentChanges {
  readonly #tokens = new MemoryRows<EnrolmentToken>();
  readonly #agents: MemoryAgents;
  readonly history: (Change & { tenant: string })[] = [];

  constructor(agents: MemoryAgents) {
    this.#agents = agents;
  }

  async token(tenant: string, tokenId: string): Promise<EnrolmentToken | undefined> {
    return this.#tokens.get(tenant, tokenId);
  }

  async tokens(tenant: string): Promise<EnrolmentToken[]> {
    return this.#tokens.inPartition(tenant);
  }

  async createToken(token: EnrolmentToken, by: ChangeAuthor): Promise<void> {
    this.#tokens.set(token.tenant, token.tokenId, token);
    this.#record('enrolment_token', token, by, undefined, token);
  }

  async changeToken(read: EnrolmentToken, token: EnrolmentToken, by: ChangeAuthor): Promise<boolean> {
    if (!this.#isStill(read)) return false;
    const next = { ...token, revision: read.revision + 1 };
    this.#tokens.set(read.tenant, read.tokenId, next);
    this.#record('enrolment_token', read, by, read, next);
    return true;
  }

  async enrol(token: EnrolmentToken, agent: Agent, by: ChangeAuthor): Promise<boolean> {
    if (!this.#isStill(token)) return false;
    const used = { ...token, used: { at: by.at, agentId: agent.agentId }, revision: token.revision + 1 };
    this.#tokens.set(token.tenant, token.tokenId, used);
    if (!(await this.#agents.create(agent))) {
      this.#tokens.set(token.tenant, token.tokenId, token);
      return false;
    }
    this.#record('agent', agent, by, undefined, agent);
    return true;
  }

  async changeAgent(read: Agent, agent: Agent, by: ChangeAuthor): Promise<boolean> {
    const done = await this.#agents.update(read, agent);
    if (done) this.#record('agent', read, by, read, agent);
    return done;
  }

  async removeAgent(read: Agent, by: ChangeAuthor): Promise<boolean> {
    const done = await this.#agents.delete(read);
    if (done) this.#record('agent', read, by, read, undefined);
    return done;
  }

  #isStill({ tenant, tokenId, revision }: EnrolmentToken): boolean {
    return this.#tokens.peek(tenant, tokenId)?.revision === revision;
  }

  #record(
    kind: 'agent' | 'enrolment_token',
    { tenant, name }: { tenant: string; name: string },
    by: ChangeAuthor,
    before: object | undefined,
    after: object | undefined,
  ): void {
    const action = before === undefined ? 'created' : after === undefined ? 'deleted' : 'changed';
    this.history.push({ ...by, tenant, kind, name, action, before: recorded(before), after: recorded(after) });
  }
}

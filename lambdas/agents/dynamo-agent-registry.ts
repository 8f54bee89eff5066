import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { systemPause } from '../entry/system.ts';
import { ROW_IS_NEW, revisionIs } from '../run/dynamo/dynamo-conditions.ts';
import { assignmentItem, docOf, type Item, toItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import { DynamoRows, under } from '../run/dynamo/dynamo-rows.ts';
import type { Pause } from '../run/dynamo/dynamo-transactions.ts';
import type { Agent } from './agent.ts';
import type { AgentRegistry } from './agent-registry.ts';
import type { Assignment, AssignmentPlace } from './assignment.ts';

const agentItem = (agent: Agent): Item => toItem(keys.agentKey(agent.tenant, agent.agentId), agent);

const next = (read: Agent, agent: Agent): Agent => ({ ...agent, revision: read.revision + 1 });

export class DynamoAgentRegistry implements AgentRegistry {
  readonly #rows: DynamoRows;
  readonly #pause: Pause;

  constructor(client: DynamoDBClient, table: string, pause: Pause = systemPause) {
    this.#rows = new DynamoRows(client, table);
    this.#pause = pause;
  }

  async agents(tenant: string, { after, limit }: { after?: string; limit: number }): Promise<Agent[]> {
    const all = under(keys.agentPartition(tenant), keys.AGENT_PREFIX);
    const from = after === undefined ? all.from : keys.agentKey(tenant, after).sk;
    const items = await this.#rows.range({ ...all, from }, { limit: limit + 1 });
    return items
      .map((item) => docOf<Agent>(item))
      .filter(({ agentId }) => agentId !== after)
      .slice(0, limit);
  }

  agent(tenant: string, agentId: string): Promise<Agent | undefined> {
    return this.#rows.get(keys.agentKey(tenant, agentId));
  }

  create(agent: Agent): Promise<boolean> {
    return this.#rows.save(agentItem(agent), ROW_IS_NEW);
  }

  update(read: Agent, agent: Agent): Promise<boolean> {
    return this.#rows.save(agentItem(next(read, agent)), revisionIs(read.revision));
  }

  async delete(read: Agent): Promise<boolean> {
    const key = keys.agentKey(read.tenant, read.agentId);
    return !(await this.#rows.transact([this.#rows.remove(key, revisionIs(read.revision))], this.#pause));
  }

  async offer(assignment: Assignment, read: Agent, agent: Agent): Promise<boolean> {
    const refusals = await this.#rows.transact(
      [
        this.#rows.put(assignmentItem(assignment), ROW_IS_NEW),
        this.#rows.put(agentItem(next(read, agent)), revisionIs(read.revision)),
      ],
      this.#pause,
    );
    if (!refusals) return true;
    // Refused because this offer was stored before, and its response was lost.
    const stored = refusals[0]?.Item && docOf<Assignment>(refusals[0].Item);
    return stored?.statementHash === assignment.statementHash;
  }

  assignment(tenant: string, place: AssignmentPlace): Promise<Assignment | undefined> {
    return this.#rows.get(keys.assignmentKey(tenant, place));
  }
}

import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Agent } from '../../agents/agent.ts';
import { systemPause } from '../../entry/system.ts';
import type { ChangeAuthor } from '../../pipeline/definition-changes.ts';
import { DynamoChanges, type Saved } from '../../pipeline/dynamo-definition-changes.ts';
import { revisionIs } from '../../run/dynamo/dynamo-conditions.ts';
import { docOf, type Item, toItem } from '../../run/dynamo/dynamo-items.ts';
import * as keys from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows, under } from '../../run/dynamo/dynamo-rows.ts';
import type { Pause } from '../../run/dynamo/dynamo-transactions.ts';
import { CountersignError } from '../../run/errors.ts';
import type { AgentChanges } from './agent-changes.ts';
import { type EnrolmentToken, TOKEN_STORED_MS } from './enrolment-token.ts';

const keyOfToken = ({ tenant, tokenId }: EnrolmentToken) => keys.enrolmentTokenKey(tenant, tokenId);

const expiry = ({ expiresAt }: EnrolmentToken) => ({
  [keys.TTL_ATTRIBUTE]: Math.ceil((Date.parse(expiresAt) + TOKEN_STORED_MS) / 1000),
});

const tokenItem = (token: EnrolmentToken): Item => toItem(keyOfToken(token), token, expiry(token));

export class DynamoAgentChanges implements AgentChanges {
  readonly #rows: DynamoRows;
  readonly #changes: DynamoChanges;

  constructor(client: DynamoDBClient, table: string, pause: Pause = systemPause) {
    this.#rows = new DynamoRows(client, table);
    this.#changes = new DynamoChanges(this.#rows, pause);
  }

  token(tenant: string, tokenId: string): Promise<EnrolmentToken | undefined> {
    return this.#rows.get(keys.enrolmentTokenKey(tenant, tokenId));
  }

  async tokens(tenant: string): Promise<EnrolmentToken[]> {
    const items = await this.#rows.range(under(keys.agentPartition(tenant), keys.ENROLMENT_TOKEN_PREFIX));
    return items.map((item) => docOf<EnrolmentToken>(item));
  }

  async createToken(token: EnrolmentToken, by: ChangeAuthor): Promise<void> {
    if (await this.#changes.saveNew(this.#tokenSaved(token, by), token)) return;
    throw new CountersignError('CONFLICT', `the id of token ${token.tokenId} is taken; try again`);
  }

  changeToken(read: EnrolmentToken, token: EnrolmentToken, by: ChangeAuthor): Promise<boolean> {
    const next = { ...token, revision: read.revision + 1 };
    return unlessChanged(() => this.#changes.save(this.#tokenSaved(token, by), next, { replaces: read }));
  }

  enrol(token: EnrolmentToken, agent: Agent, by: ChangeAuthor): Promise<boolean> {
    const used = { ...token, used: { at: by.at, agentId: agent.agentId }, revision: token.revision + 1 };
    const besides = [this.#rows.put(tokenItem(used), revisionIs(token.revision))];
    return this.#changes.saveNew({ ...this.#agentSaved(agent, by), besides }, agent);
  }

  changeAgent(read: Agent, agent: Agent, by: ChangeAuthor): Promise<boolean> {
    const next = { ...agent, revision: read.revision + 1 };
    return unlessChanged(() => this.#changes.save(this.#agentSaved(agent, by), next, { replaces: read }));
  }

  async removeAgent(read: Agent, by: ChangeAuthor): Promise<boolean> {
    return unlessChanged(() => this.#changes.delete(this.#agentSaved(read, by), { replaces: read }));
  }

  #tokenSaved(token: EnrolmentToken, by: ChangeAuthor): Saved {
    const { tenant, name } = token;
    return { tenant, kind: 'enrolment_token', name, key: keyOfToken(token), by, attributes: expiry(token) };
  }

  #agentSaved({ tenant, agentId, name }: Agent, by: ChangeAuthor): Saved {
    return { tenant, kind: 'agent', name, key: keys.agentKey(tenant, agentId), by };
  }
}

async function unlessChanged(change: () => Promise<unknown>): Promise<boolean> {
  try {
    await change();
    return true;
  } catch (error) {
    if (error instanceof CountersignError && error.code === 'CONFLICT') return false;
    throw error;
  }
}

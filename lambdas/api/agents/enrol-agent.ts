import type * as z from 'zod';
import { newAgent } from '../../agents/agent.ts';
import { type AgentRegistry, allAgents } from '../../agents/agent-registry.ts';
import type { EnrolRequest, EnrolResponse, SigningKey } from '../../agents/protocol.ts';
import { Problem } from '../../entry/http.ts';
import { type Clock, type Ids, isoNow, type Log } from '../../entry/ports.ts';
import { changeAuthor } from '../../pipeline/definition-changes.ts';
import type { AgentChanges } from './agent-changes.ts';
import {
  agentIdOf,
  type EnrolmentToken,
  isToken,
  parseToken,
  REUSES_RECORDED_MAX,
  stateOfToken,
} from './enrolment-token.ts';

export interface Enroller {
  agents: Pick<AgentRegistry, 'agents' | 'agent'>;
  changes: Pick<AgentChanges, 'token' | 'changeToken' | 'enrol'>;
  /** The keys that sign assignments. */
  signingKeys(): Promise<SigningKey[]>;
  clock: Clock;
  ids: Ids;
  log: Log;
}

type Enrolled = z.infer<typeof EnrolResponse>;

/**
 * Enrols an agent. The token is used up in the transaction that creates the agent, so it enrols one agent. The same
 * request again, with the same key, gets the same response: it may have been lost.
 */
export async function enrolAgent(
  ports: Enroller,
  { token: given, public_key: publicKey }: z.infer<typeof EnrolRequest>,
  keyThumbprint: string,
): Promise<Enrolled> {
  const token = await knownToken(ports, given);
  const at = isoNow(ports.clock);
  if (token.used) return enrolledBefore(ports, token, publicKey, keyThumbprint);
  const state = stateOfToken(token, at);
  if (state !== 'open') {
    throw invalid(`the enrolment token of ${token.name} is ${state}`);
  }
  await assertNameIsFree(ports, token);
  const { tenant, name, environments, networkSegment, createdBy: enrolledBy } = token;
  const agentId = agentIdOf(ports.ids, tenant, name);
  const agent = newAgent({
    tenant,
    agentId,
    name,
    publicKey,
    environments,
    networkSegment,
    enrolledAt: at,
    enrolledBy,
  });
  if (await ports.changes.enrol(token, agent, changeAuthor(ports, agentId))) return responseOf(ports, token, agentId);
  // Another request was first. Perhaps it was this one, sent twice.
  return enrolledBefore(ports, await knownToken(ports, given), publicKey, keyThumbprint);
}

async function knownToken({ changes }: Enroller, given: string): Promise<EnrolmentToken> {
  const place = parseToken(given);
  const token = place && (await changes.token(place.tenant, place.tokenId));
  if (token && isToken(token, given)) return token;
  throw invalid('there is no such enrolment token');
}

/** Who has the key that was enrolled gets the response again. Anybody else has a token that somebody else used. */
async function enrolledBefore(
  ports: Enroller,
  token: EnrolmentToken,
  publicKey: string,
  keyThumbprint: string,
): Promise<Enrolled> {
  const { tenant, name, used } = token;
  const agent = used && (await ports.agents.agent(tenant, used.agentId));
  if (agent?.publicKey === publicKey) return responseOf(ports, token, agent.agentId);
  await recordReuse(ports, token, keyThumbprint);
  throw invalid(`the enrolment token of ${name} was used at ${used?.at}`);
}

async function recordReuse(ports: Enroller, token: EnrolmentToken, keyThumbprint: string): Promise<void> {
  const { tenant, tokenId, name, reused } = token;
  ports.log.warn('an enrolment token was used again', { tenant, tokenId, name, keyThumbprint });
  const count = (reused?.count ?? 0) + 1;
  if (count > REUSES_RECORDED_MAX) return;
  const by = changeAuthor(ports, `key:${keyThumbprint}`);
  // Of two attempts at once one entry is enough.
  await ports.changes.changeToken(token, { ...token, reused: { at: by.at, keyThumbprint, count } }, by);
}

async function assertNameIsFree({ agents }: Enroller, { tenant, name }: EnrolmentToken): Promise<void> {
  const all = await allAgents(agents, tenant);
  if (!all.some((agent) => agent.name === name)) return;
  throw new Problem(409, 'CONFLICT', `there is an agent ${name}; remove it first: countersign agents remove ${name}`);
}

async function responseOf(
  { signingKeys }: Enroller,
  { tenant, name, environments, networkSegment }: EnrolmentToken,
  agentId: string,
): Promise<Enrolled> {
  return {
    agent_id: agentId,
    tenant,
    name,
    environments,
    network_segment: networkSegment,
    signing_keys: await signingKeys(),
  };
}

const invalid = (reason: string): Problem =>
  new Problem(
    403,
    'ENROLMENT_TOKEN_INVALID',
    `${reason}; ask an owner or admin for another one: countersign agents token NAME --environment ENV`,
  );

import type { AgentRegistry } from '../../agents/agent-registry.ts';
import { allAgents } from '../../agents/agent-registry.ts';
import { Problem } from '../../entry/http.ts';
import { type Clock, type Ids, isoNow } from '../../entry/ports.ts';
import { later } from '../../run/lease.ts';
import type { enrolmentTokenRoutes } from '../contract/agents.ts';
import { authorOf } from '../definitions/change-person.ts';
import { type Paged, pageOf, readPage } from '../paging.ts';
import type { Handlers } from '../router.ts';
import type { AgentChanges } from './agent-changes.ts';
import { type EnrolmentToken, formatToken, stateOfToken, tokenHash } from './enrolment-token.ts';

interface TokenPorts extends Paged {
  agents: Pick<AgentRegistry, 'agents'>;
  changes: AgentChanges;
  clock: Clock;
  ids: Ids;
  newSecret(): string;
}

/** More open tokens than this nobody keeps an eye on. */
const OPEN_TOKENS_MAX = 100;
const MINUTE_MS = 60_000;

export const tokenHandlers: Handlers<TokenPorts, typeof enrolmentTokenRoutes> = {
  async listEnrolmentTokens(ports, { caller: { tenant }, query }) {
    const all = await ports.changes.tokens(tenant);
    const page = await readPage(ports, `${tenant}/enrolment-tokens`, query, (place) =>
      pageOf(all, place, ({ tokenId }) => tokenId),
    );
    const at = isoNow(ports.clock);
    const enrolmentTokens = page.items.map((token) => viewOf(token, at));
    return { status: 200, body: { enrolmentTokens, nextCursor: page.nextCursor } };
  },

  async createEnrolmentToken(ports, { caller, body: { name, environments, networkSegment, minutes } }) {
    const by = authorOf(ports, caller);
    const { tenant } = caller;
    await assertAllowed(ports, tenant, name, by.at);
    const tokenId = ports.ids.next('enr');
    const token = formatToken(tenant, tokenId, ports.newSecret());
    const stored: EnrolmentToken = {
      tenant,
      tokenId,
      name,
      environments: [...new Set(environments)],
      networkSegment,
      sha256: tokenHash(token),
      createdBy: by.actor,
      createdAt: by.at,
      expiresAt: later(by.at, minutes * MINUTE_MS),
      revision: 1,
    };
    await ports.changes.createToken(stored, by);
    return { status: 201, body: { ...viewOf(stored, by.at), token } };
  },

  async revokeEnrolmentToken(ports, { caller, params: { id } }) {
    const by = authorOf(ports, caller);
    const read = await ports.changes.token(caller.tenant, id);
    if (!read) {
      throw new Problem(404, 'NOT_FOUND', `there is no enrolment token ${id}; list them: countersign agents tokens`);
    }
    if (read.used) {
      const detail = `the token was used at ${read.used.at}; remove the agent instead: countersign agents remove ${read.name}`;
      throw new Problem(409, 'CONFLICT', detail);
    }
    const token = { ...read, revoked: { at: by.at, by: by.actor } };
    if (!read.revoked && !(await ports.changes.changeToken(read, token, by))) {
      throw new Problem(409, 'CONFLICT', 'the token was changed at the same time, perhaps used; list the tokens');
    }
    return { status: 200, body: viewOf(token, by.at) };
  },
};

async function assertAllowed({ agents, changes }: TokenPorts, tenant: string, name: string, at: string): Promise<void> {
  const [all, tokens] = await Promise.all([allAgents(agents, tenant), changes.tokens(tenant)]);
  if (all.some((agent) => agent.name === name)) {
    throw new Problem(409, 'CONFLICT', `there is an agent ${name}; choose another name, or remove it first`);
  }
  if (tokens.filter((token) => stateOfToken(token, at) === 'open').length < OPEN_TOKENS_MAX) return;
  const detail = `the tenant has ${OPEN_TOKENS_MAX} open enrolment tokens; revoke some: countersign agents tokens`;
  throw new Problem(409, 'CONFLICT', detail);
}

function viewOf(token: EnrolmentToken, at: string) {
  const { tokenId, name, environments, networkSegment, createdBy, createdAt, expiresAt, used, reused } = token;
  return {
    tokenId,
    name,
    environments,
    networkSegment,
    state: stateOfToken(token, at),
    createdBy,
    createdAt,
    expiresAt,
    agentId: used?.agentId ?? null,
    reused: reused ?? null,
  };
}

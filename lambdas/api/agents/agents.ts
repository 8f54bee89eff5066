import { type Agent, heldAt, isDrainedByPerson, stateOf } from '../../agents/agent.ts';
import { type AgentRegistry, allAgents } from '../../agents/agent-registry.ts';
import { placeOf } from '../../agents/assignment.ts';
import { keyThumbprint, parsePublicKey } from '../../agents/request-signature.ts';
import { closeNameOr } from '../../entry/did-you-mean.ts';
import { Problem } from '../../entry/http.ts';
import { type Clock, type Ids, isoNow } from '../../entry/ports.ts';
import type { Caller } from '../authorizer/caller.ts';
import { type AgentView, agentRoutes, enrolmentTokenRoutes, profileRoutes } from '../contract/agents.ts';
import type { Contract } from '../contract/index.ts';
import { authorOf } from '../definitions/change-person.ts';
import { type Paged, pageByPlace, readPage } from '../paging.ts';
import { type Handlers, router } from '../router.ts';
import type { AgentChanges } from './agent-changes.ts';
import { tokenHandlers } from './enrolment-tokens.ts';
import { type ProfilesPorts, profileHandlers } from './profiles.ts';

export interface AgentsPorts extends Paged, ProfilesPorts {
  agents: Pick<AgentRegistry, 'agents' | 'agent'>;
  changes: AgentChanges;
  clock: Clock;
  ids: Ids;
  /** A new random secret of an enrolment token. */
  newSecret(): string;
}

/** The agent itself changes its row with each sync. */
const TRIES_MAX = 8;

const agentHandlers: Handlers<AgentsPorts, typeof agentRoutes> = {
  async listAgents(ports, { caller: { tenant }, query }) {
    const page = await readPage(ports, `${tenant}/agents`, query, ({ after, limit }) =>
      pageByPlace(
        limit,
        (count) => ports.agents.agents(tenant, { limit: count, ...(after !== undefined && { after }) }),
        ({ agentId }) => agentId,
      ),
    );
    const at = isoNow(ports.clock);
    return { status: 200, body: { agents: page.items.map((each) => viewOf(each, at)), nextCursor: page.nextCursor } };
  },

  async getAgent(ports, { caller: { tenant }, params: { id } }) {
    return { status: 200, body: viewOf(await findAgent(ports, tenant, id), isoNow(ports.clock)) };
  },

  async drainAgent(ports, { caller, params: { id }, body: { reason } }) {
    const at = isoNow(ports.clock);
    const draining = { at, by: caller.person, ...(reason !== undefined && { reason }) };
    const agent = await change(ports, caller, id, (now) => (isDrainedByPerson(now) ? undefined : { ...now, draining }));
    return { status: 200, body: viewOf(agent, at) };
  },

  async resumeAgent(ports, { caller, params: { id } }) {
    const agent = await change(ports, caller, id, ({ draining, ...now }) => (draining ? now : undefined));
    return { status: 200, body: viewOf(agent, isoNow(ports.clock)) };
  },

  async removeAgent(ports, { caller, params: { id } }) {
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const agent = await findAgent(ports, caller.tenant, id);
      if (!(await ports.changes.removeAgent(agent, authorOf(ports, caller)))) continue;
      const running = heldAt(agent, isoNow(ports.clock)).filter(({ state }) => state === 'acknowledged').length;
      return { status: 200, body: { removed: agent.name, running } };
    }
    throw busy(id);
  },
};

/** One function for what people do with agents. */
export const handleAgents = router<AgentsPorts, Contract['agents']>(
  { ...agentRoutes, ...enrolmentTokenRoutes, ...profileRoutes },
  {
    ...agentHandlers,
    ...tokenHandlers,
    ...profileHandlers,
  },
);

/** Changes the agent as it is now, with an entry in the history. Undefined: it is so already. */
async function change(
  ports: AgentsPorts,
  caller: Caller,
  id: string,
  changed: (agent: Agent) => Agent | undefined,
): Promise<Agent> {
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const read = await findAgent(ports, caller.tenant, id);
    const agent = changed(read);
    if (!agent) return read;
    if (await ports.changes.changeAgent(read, agent, authorOf(ports, caller))) return agent;
  }
  throw busy(id);
}

const busy = (id: string): Problem => new Problem(409, 'CONFLICT', `agent ${id} is changing too fast; try again`);

/** By id or name. */
async function findAgent({ agents }: AgentsPorts, tenant: string, id: string): Promise<Agent> {
  const found = await agents.agent(tenant, id);
  if (found) return found;
  const all = await allAgents(agents, tenant);
  const named = all.find(({ name }) => name === id);
  if (named) return named;
  const names = all.map(({ name }) => name);
  throw new Problem(404, 'NOT_FOUND', `there is no agent ${id}${closeNameOr('agents list', id, names)}`);
}

function viewOf(agent: Agent, at: string): AgentView {
  const { agentId, name, environments, networkSegment, enrolledAt, enrolledBy, registration, publicKey } = agent;
  const held = heldAt(agent, at);
  const key = parsePublicKey(publicKey);
  return {
    agentId,
    name,
    state: stateOf(agent, at),
    environments,
    networkSegment,
    enrolledAt,
    enrolledBy,
    keyThumbprint: key ? keyThumbprint(key) : '',
    lastSyncAt: agent.lastSyncAt ?? null,
    stoppedAt: agent.unregistered?.at ?? null,
    process: registration
      ? {
          version: registration.agentVersion,
          registeredAt: registration.at,
          environments: registration.environments,
          capabilities: registration.capabilities,
          profiles: registration.profiles,
          slots: registration.slots,
          freeSlots: Math.max(0, registration.slots - held.length),
          host: registration.host,
        }
      : null,
    commands: held.flatMap(({ assignmentId, state, until }) => {
      const place = placeOf(assignmentId);
      return place ? [{ assignmentId, runId: place.runId, stepIndex: place.stepIndex, state, until }] : [];
    }),
    draining: agent.draining ?? null,
    errored: agent.errored ?? null,
  };
}

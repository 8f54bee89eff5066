import type * as z from 'zod';
import { type Clock, isoNow } from '../entry/ports.ts';
import { CountersignError } from '../run/errors.ts';
import { type Agent, heldAt, isDrainedByPerson } from './agent.ts';
import type { AgentRegistry } from './agent-registry.ts';
import type { AgentCaller } from './agent-requests.ts';
import type { RegisterRequest } from './protocol.ts';

interface Ports {
  agents: AgentRegistry;
  clock: Clock;
}

/** The runtime and people change the row of an agent, too. Each try works on the row as it is then. */
const TRIES_MAX = 8;

/** Changes the row of an agent, starting with the row as it was read. `undefined`: nothing is written. */
export async function changeAgent(
  { agents }: Pick<Ports, 'agents'>,
  read: Agent,
  change: (agent: Agent) => Agent | undefined,
): Promise<Agent> {
  let agent: Agent | undefined = read;
  for (let tries = 1; agent && tries <= TRIES_MAX; tries += 1) {
    const changed = change(agent);
    if (!changed) return agent;
    if (await agents.update(agent, changed)) return { ...changed, revision: agent.revision + 1 };
    agent = await agents.agent(read.tenant, read.agentId);
  }
  if (agent) throw new CountersignError('CONFLICT', `agent ${read.name} is changing too fast; try again`);
  throw new CountersignError('NOT_FOUND', `agent ${read.name} is no longer enrolled; enrol it again`);
}

/**
 * A process of the agent has started. What an earlier process ran is no longer renewed, and is lost when its lease ends.
 * Its slots become free then, too.
 */
export async function registerAgent(
  ports: Ports,
  { agent, requestCounter }: AgentCaller,
  request: z.infer<typeof RegisterRequest>,
): Promise<Agent> {
  const refused = request.environments.filter((environment) => !agent.environments.includes(environment));
  if (refused.length > 0) {
    throw new CountersignError(
      'INPUT_INVALID',
      `${agent.name} was enrolled for ${agent.environments.join(', ')}, not for ${refused.join(', ')}; ` +
        'register without it, or ask an owner or admin for an enrolment token with it',
    );
  }
  return changeAgent(ports, agent, (now) => {
    const at = isoNow(ports.clock);
    const { draining, errored: _errored, backOnlineAt: _backOnline, unregistered: _before, ...facts } = now;
    const { boot_id: bootId, protocol, agent_version: agentVersion, capabilities, profiles, slots, host } = request;
    const { environments } = request;
    return {
      ...facts,
      ...(draining && isDrainedByPerson(now) && { draining }),
      registration: { bootId, protocol, agentVersion, capabilities, environments, profiles, slots, host, at },
      lastSyncAt: at,
      ...(requestCounter !== undefined && { requestCounter }),
    };
  });
}

/** The process ends: the agent stays enrolled, and is offline until a process registers. It must have nothing to do. */
export function unregisterAgent(ports: Ports, agent: Agent): Promise<Agent> {
  return changeAgent(ports, agent, (now) => {
    if (!now.registration) return undefined;
    const at = isoNow(ports.clock);
    const running = heldAt(now, at).filter(({ state }) => state === 'acknowledged').length;
    if (running > 0) {
      throw new CountersignError(
        'CONFLICT',
        `${now.name} still runs ${running} ${running === 1 ? 'command' : 'commands'}; drain it, and unregister it when they have ended`,
      );
    }
    const { registration, lastSyncAt: _lastSync, ...facts } = now;
    return { ...facts, unregistered: { bootId: registration.bootId, at } };
  });
}

import type { Agent, HeldAssignment } from '../../agents/agent.ts';
import { withAssignment, withoutAssignment } from '../../agents/agent.ts';
import { changeAgent } from '../../agents/agent-lifecycle.ts';
import type { AgentRegistry } from '../../agents/agent-registry.ts';
import type { AgentCaller } from '../../agents/agent-requests.ts';
import { type Assignment, placeOf } from '../../agents/assignment.ts';
import { isoNow } from '../../entry/ports.ts';
import { CountersignError } from '../../run/errors.ts';
import type { Reporter } from '../6-report-outcome.ts';

/** The ports of the requests that agents send: sync-agent.ts, acknowledge-assignment.ts, complete-assignment.ts. */
export type AgentPorts = Reporter & { agents: AgentRegistry; sessionSecret?: () => Promise<string> };

/** The assignment that an agent names. Those of others do not exist for it. */
export async function assignmentOf(
  { agents }: AgentPorts,
  { agent }: AgentCaller,
  request: { assignment_id: string; lease_version: number },
): Promise<Assignment> {
  const place = placeOf(request.assignment_id);
  const found =
    place?.leaseVersion === request.lease_version ? await agents.assignment(agent.tenant, place) : undefined;
  if (found?.agentId === agent.agentId) return found;
  throw new CountersignError('NOT_FOUND', `${agent.name} has no assignment ${request.assignment_id}`);
}

/** The slot of an assignment. It expires by itself, so a failure here loses nothing. */
export async function holdSlot(ports: AgentPorts, agent: Agent, held: HeldAssignment): Promise<void> {
  await changeSlots(ports, agent, (now) => withAssignment(now, held, isoNow(ports.clock)));
}

export async function freeSlot(ports: AgentPorts, agent: Agent, assignmentId: string): Promise<void> {
  await changeSlots(ports, agent, (now) => {
    const isHeld = now.assignments.some((held) => held.assignmentId === assignmentId);
    return isHeld ? withoutAssignment(now, assignmentId, isoNow(ports.clock)) : undefined;
  });
}

async function changeSlots(
  ports: AgentPorts,
  agent: Agent,
  change: (agent: Agent) => Agent | undefined,
): Promise<void> {
  try {
    await changeAgent(ports, agent, change);
  } catch (error) {
    const { tenant, agentId } = agent;
    ports.log.warn('the slots of an agent could not be changed; they expire', { tenant, agentId, error });
  }
}

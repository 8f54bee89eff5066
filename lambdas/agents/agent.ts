import { type AGENT_PROTOCOL_VERSION, type AgentState, OFFLINE_AFTER_MS, type ProfileName } from './agent-terms.ts';

const AGENT_SCHEMA_VERSION = 1;

export type CommandEnvironment = 'prod' | 'staging' | 'dev';

/** What a process of the agent said when it registered. */
export interface Registration {
  /** Different for each process: shows when two processes use one identity. */
  bootId: string;
  protocol: typeof AGENT_PROTOCOL_VERSION;
  agentVersion: string;
  capabilities: string[];
  /** A part of what the owner granted. */
  environments: CommandEnvironment[];
  /** The profiles whose isolation this host provides. */
  profiles: ProfileName[];
  /** How many commands it runs at once. */
  slots: number;
  host: { platform: string; arch: string; node: string };
  at: string;
}

/**
 * An assignment that takes a slot of the agent. A slot that nobody renews becomes free at `until`, so a crash between
 * two writes never leaks one.
 */
export interface HeldAssignment {
  assignmentId: string;
  state: 'offered' | 'acknowledged';
  until: string;
}

/** A program in the network of a customer that runs the commands of steps. One row for each. */
export interface Agent {
  schemaVersion: typeof AGENT_SCHEMA_VERSION;
  tenant: string;
  agentId: string;
  name: string;
  /** An Ed25519 public key as SPKI, in base64. Each request of the agent is signed with it. */
  publicKey: string;
  /** What the owner granted when the agent was enrolled. */
  environments: CommandEnvironment[];
  networkSegment: string | null;
  enrolledAt: string;
  enrolledBy: string;
  /** The last process that registered; absent before the first start and after `unregister`. */
  registration?: Registration;
  /** The last process that ended as it should, so that its requests cannot be sent again by others. */
  unregistered?: { bootId: string; at: string };
  lastSyncAt?: string;
  /** The counter of the last request of this process, against replays. */
  requestCounter?: number;
  /** Whether the process holds an open socket, which "sync now" is sent through. */
  socket?: boolean;
  /** It finishes its commands and accepts no new ones. */
  draining?: { at: string; by: string; reason?: string };
  /** The problem that the agent reported in its last sync. */
  errored?: { at: string; reason: string };
  /** When it last had a problem, and when it last came back after it had been silent: no new commands for a minute. */
  erroredAt?: string;
  backOnlineAt?: string;
  assignments: HeldAssignment[];
  /** Grows with each write of the row. */
  revision: number;
}

export type NewAgent = Pick<
  Agent,
  'tenant' | 'agentId' | 'name' | 'publicKey' | 'environments' | 'networkSegment' | 'enrolledAt' | 'enrolledBy'
>;

export const newAgent = (agent: NewAgent): Agent => ({
  schemaVersion: AGENT_SCHEMA_VERSION,
  ...agent,
  assignments: [],
  revision: 1,
});

export const isOffline = ({ lastSyncAt }: Agent, at: string): boolean =>
  lastSyncAt === undefined || Date.parse(at) - Date.parse(lastSyncAt) > OFFLINE_AFTER_MS;

/** An agent drains itself before its process ends, and its next process works again. Only a person resumes what a person drained. */
export const isDrainedByPerson = ({ draining, agentId }: Agent): boolean =>
  draining !== undefined && draining.by !== agentId;

/** The assignments that take a slot now. */
export const heldAt = ({ assignments }: Agent, at: string): HeldAssignment[] =>
  assignments.filter(({ until }) => until > at);

export const freeSlots = (agent: Agent, at: string): number =>
  (agent.registration?.slots ?? 0) - heldAt(agent, at).length;

/** The states of source 001, 2.1. They are derived and not stored. */
export function stateOf(agent: Agent, at: string): AgentState {
  if (!agent.registration || isOffline(agent, at)) return 'offline';
  if (agent.errored) return 'errored';
  if (agent.draining) return 'draining';
  const held = heldAt(agent, at);
  if (held.some(({ state }) => state === 'acknowledged')) return 'executing';
  return held.length > 0 ? 'assigned' : 'idle';
}

/** The agent with this assignment in a slot: added, or renewed. */
export function withAssignment(agent: Agent, held: HeldAssignment, at: string): Agent {
  const others = heldAt(agent, at).filter(({ assignmentId }) => assignmentId !== held.assignmentId);
  return { ...agent, assignments: [...others, held] };
}

export const withoutAssignment = (agent: Agent, assignmentId: string, at: string): Agent => ({
  ...agent,
  assignments: heldAt(agent, at).filter((held) => held.assignmentId !== assignmentId),
});

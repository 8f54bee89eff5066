import * as z from 'zod';

/** What functions that do not receive requests of agents also need. The schemas of requests are in protocol.ts, because each function creates what it imports at its start. */
export const AGENT_PROTOCOL_VERSION = 1;

/** An agent syncs this often, and more often while it runs a command, because the sync renews the lease. */
export const SYNC_INTERVAL_MS = 15_000;
export const SYNC_WHILE_RUNNING_MS = 10_000;
/** An agent without the socket, or one that expects a response soon, syncs this often. */
export const SYNC_WITHOUT_SOCKET_MS = 5_000;
/** Agents follow what the last response says, so a stage can change it without new agents. */
export const INTERVALS = {
  sync_ms: SYNC_INTERVAL_MS,
  sync_while_running_ms: SYNC_WHILE_RUNNING_MS,
  sync_without_socket_ms: SYNC_WITHOUT_SOCKET_MS,
};
/** What an agent signs to open its socket. Its URL has another path, which depends on the stage. */
export const AGENT_SOCKET_PATH = '/api/v1/agent/socket';
/** API Gateway closes a connection after two hours. */
export const SOCKET_MAX_MS = 115 * 60_000;
/** An agent that has not synced for this long is offline. */
export const OFFLINE_AFTER_MS = 45_000;

export const OUTPUT_CHUNK_MAX_BYTES = 64 * 1024;
export const OUTPUT_CHUNKS_PER_REQUEST_MAX = 8;
/** Further output is counted, not stored. The digest covers what is stored. */
export const OUTPUT_MAX_BYTES = 10 * 1024 * 1024;
/** An hour with four chunks a second has 14,400. */
export const OUTPUT_CHUNKS_MAX = 20_000;

export const PROFILE_NAMES = ['prod-critical', 'prod-standard', 'staging-standard', 'dev-flex'] as const;
export const ProfileName = z.enum(PROFILE_NAMES);
export type ProfileName = z.infer<typeof ProfileName>;

export const AGENT_ENVIRONMENTS = ['prod', 'staging', 'dev'] as const;
export const AgentEnvironment = z.enum(AGENT_ENVIRONMENTS);

/** `assigned`, `executing` and `idle` follow from the assignments of the agent, `offline` from its last sync. */
export const AGENT_STATES = ['idle', 'assigned', 'executing', 'draining', 'errored', 'offline'] as const;
export type AgentState = (typeof AGENT_STATES)[number];

const AgentTerm = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'use lower-case letters, digits, ".", "_" and "-"');
export const Capabilities = z.array(AgentTerm).max(50);

/** The type of a signed assignment. */
export const ASSIGNMENT_PAYLOAD_TYPE = 'application/vnd.countersign.assignment+json';

import type * as z from 'zod';
import type { Agent } from './agent.ts';
import type {
  AckRequest,
  AckResponse,
  CompleteRequest,
  CompleteResponse,
  HeartbeatRequest,
  HeartbeatResponse,
} from './protocol.ts';

/** Who sent a request: the agent whose key verified the signature, and the process (`boot_id`) that the nonce names. */
export interface AgentCaller {
  agent: Agent;
  bootId: string;
  /** The counter of the nonce. The next write of the agent's row stores it. */
  requestCounter?: number;
}

/** What the runtime decides in a sync. The API adds times, intervals and the socket. */
export type SyncResult = Pick<
  z.infer<typeof HeartbeatResponse>,
  'state' | 'assignments' | 'leases' | 'cancels' | 'drain'
>;

/**
 * The use cases behind the agent API. Each takes a parsed request of `protocol.ts`. Sync, acknowledgement and completion
 * are in lambdas/worker/agent (`sync-agent.ts`, `acknowledge-assignment.ts`, `complete-assignment.ts`), because they change
 * runs; registration, drain and unregister are in `agent-lifecycle.ts`.
 */
export type SyncAgent<Ports> = (
  ports: Ports,
  caller: AgentCaller,
  request: z.infer<typeof HeartbeatRequest>,
) => Promise<SyncResult>;

export type AcknowledgeAssignment<Ports> = (
  ports: Ports,
  caller: AgentCaller,
  request: z.infer<typeof AckRequest>,
) => Promise<z.infer<typeof AckResponse>>;

export type CompleteAssignment<Ports> = (
  ports: Ports,
  caller: AgentCaller,
  request: z.infer<typeof CompleteRequest>,
) => Promise<z.infer<typeof CompleteResponse>>;

import type { AgentHints } from '../agents/agent-registry.ts';
import type { LiveStore, Sockets } from './live-store.ts';
import type { ServerMessage } from './messages.ts';

const SYNC: ServerMessage = { type: 'sync' };

/** Asks an agent to sync now, if it has a connection. */
export function socketHints(live: Pick<LiveStore, 'agentConnection'>, sockets: Sockets): AgentHints {
  return {
    async syncNow(tenant, agentId) {
      const connection = await live.agentConnection(tenant, agentId);
      // A connection that is gone stays in the table until the agent connects again: it syncs more often without one.
      if (connection) await sockets.send(connection.connectionId, JSON.stringify(SYNC));
    },
  };
}

import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { type AgentHints, noHints } from '../agents/agent-registry.ts';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { systemClock } from '../entry/system.ts';
import { AwsSockets } from './aws-sockets.ts';
import { DynamoLiveStore } from './dynamo-live-store.ts';
import type { LiveStore, Sockets } from './live-store.ts';
import type { ServerMessage } from './messages.ts';

const SYNC: ServerMessage = { type: 'sync' };

/** `LIVE_CALLBACK_URL` is absent if the stage has no live feed. */
export function wireHints(
  { LIVE_CALLBACK_URL, RUN_TABLE }: { LIVE_CALLBACK_URL?: string | undefined; RUN_TABLE: string },
  dynamo: DynamoDBClient,
): AgentHints {
  if (LIVE_CALLBACK_URL === undefined) return noHints;
  const sockets = new AwsSockets(readEnvironment(AwsEnvironment), LIVE_CALLBACK_URL);
  return socketHints(new DynamoLiveStore(dynamo, RUN_TABLE, systemClock), sockets);
}

/** Asks an agent to sync now, if it has a connection. */
function socketHints(live: Pick<LiveStore, 'agentConnection'>, sockets: Sockets): AgentHints {
  return {
    async syncNow(tenant, agentId) {
      const connection = await live.agentConnection(tenant, agentId);
      // A connection that is gone stays in the table until the agent connects again: it syncs more often without one.
      if (connection) await sockets.send(connection.connectionId, JSON.stringify(SYNC));
    },
  };
}

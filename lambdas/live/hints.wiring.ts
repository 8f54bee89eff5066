import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { type AgentHints, noHints } from '../agents/agent-registry.ts';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { systemClock } from '../entry/system.ts';
import { AwsSockets } from './aws-sockets.ts';
import { DynamoLiveStore } from './dynamo-live-store.ts';
import { socketHints } from './socket-hints.ts';

/** `LIVE_CALLBACK_URL` is absent if the stage has no live feed. */
export function wireHints(
  { LIVE_CALLBACK_URL, RUN_TABLE }: { LIVE_CALLBACK_URL?: string | undefined; RUN_TABLE: string },
  dynamo: DynamoDBClient,
): AgentHints {
  if (LIVE_CALLBACK_URL === undefined) return noHints;
  const sockets = new AwsSockets(readEnvironment(AwsEnvironment), LIVE_CALLBACK_URL);
  return socketHints(new DynamoLiveStore(dynamo, RUN_TABLE, systemClock), sockets);
}

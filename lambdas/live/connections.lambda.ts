import type { APIGatewayProxyWebsocketEventV2 } from 'aws-lambda';
import { DynamoAgentRegistry } from '../agents/dynamo-agent-registry.ts';
import { DynamoOutputStore } from '../agents/dynamo-output-store.ts';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { OwnDomainEnvironment, refusalOfDirectRequest } from '../entry/own-domain.ts';
import { systemClock, systemLog, systemPause } from '../entry/system.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import { handleSocket, type SocketEvent } from './handle-socket.ts';
import { wireLive } from './live.wiring.ts';

const ownDomain = readEnvironment(OwnDomainEnvironment);
const wired = wireLive();
const ports = {
  ...wired,
  log: systemLog,
  agents: new DynamoAgentRegistry(wired.dynamo, wired.table),
  runs: new DynamoRunStore(wired.dynamo, wired.table, systemPause, systemClock),
  output: new DynamoOutputStore(wired.dynamo, wired.table, systemClock),
};

export const handler = functionHandler<
  APIGatewayProxyWebsocketEventV2,
  { statusCode: number; body?: string }
>().handler(async (event) => {
  const { headers, requestContext } = event as SocketEvent;
  // Only the request that connects has headers.
  const refusal = requestContext.routeKey === '$connect' ? refusalOfDirectRequest(ownDomain, headers) : undefined;
  return refusal ? { statusCode: 403, body: refusal } : handleSocket(ports, event as SocketEvent);
});

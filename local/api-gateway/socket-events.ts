import type { IncomingMessage } from 'node:http';

/** What is known about a connection of a WebSocket API. */
export interface SocketConnection {
  connectionId: string;
  apiId: string;
  stage: string;
  domainName: string;
  sourceIp: string;
  userAgent: string;
  connectedAtMs: number;
}

interface Happening {
  routeKey: string;
  eventType: 'CONNECT' | 'MESSAGE' | 'DISCONNECT';
  requestId: string;
  atMs: number;
}

/** The event of a WebSocket API, as a Lambda integration receives it. */
export function socketEvent(connection: SocketConnection, { routeKey, eventType, requestId, atMs }: Happening) {
  const { connectionId, apiId, stage, domainName, sourceIp, userAgent, connectedAtMs } = connection;
  return {
    requestContext: {
      routeKey,
      eventType,
      ...(eventType === 'MESSAGE' && { messageId: requestId }),
      extendedRequestId: requestId,
      requestId,
      requestTime: new Date(atMs).toUTCString(),
      requestTimeEpoch: atMs,
      messageDirection: 'IN',
      stage,
      apiId,
      domainName,
      connectionId,
      connectedAt: connectedAtMs,
      identity: { sourceIp, userAgent },
    },
    isBase64Encoded: false,
  };
}

/** The headers and the query of the request that opens a connection. API Gateway leaves both out of messages. */
export function openingRequest(request: IncomingMessage) {
  const headers = Object.entries(request.headersDistinct).map(([name, values]) => [name, values ?? []] as const);
  const query = [...new URL(request.url ?? '/', 'http://localhost').searchParams];
  const single = Object.fromEntries(query);
  return {
    headers: Object.fromEntries(headers.map(([name, values]) => [name, values.join(',')])),
    multiValueHeaders: Object.fromEntries(headers),
    ...(query.length > 0 && {
      queryStringParameters: single,
      multiValueQueryStringParameters: Object.fromEntries(
        Object.keys(single).map((name) => [name, query.filter(([each]) => each === name).map(([, value]) => value)]),
      ),
    }),
  };
}

import { createMcpHandler } from '@modelcontextprotocol/server';
import { type HttpEvent, type HttpResponse, json, Problem, rawBody } from '../../entry/http.ts';
import type { StageIssuer } from '../../entry/oidc-issuer.ts';
import type { SessionAuthenticator } from '../actions/authenticate-session.ts';
import { MCP_BODY_MAX_BYTES, mcpRoutes } from '../contract/mcp.ts';
import { routeKey } from '../contract/route.ts';
import { assertResponseFits } from '../response-size.ts';
import { type McpCaller, mcpCallerOf } from './mcp-caller.ts';
import { type McpPorts, mcpServer } from './mcp-server.ts';
import { scopeOf, toolNamed } from './offered-tools.ts';
import { metadataUrl, originOf, protectedResource } from './protected-resource.ts';

type Ports = McpPorts & SessionAuthenticator & { issuers: readonly StageIssuer[] };

/** A program that says neither, or accepts everything, as curl does, sends JSON and can read what it is sent. */
const UNLESS_SENT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Each request is complete in itself, as Lambda needs it: no stream stays open, and any instance can answer the next one. */
export async function handleMcp(ports: Ports, event: HttpEvent): Promise<HttpResponse> {
  if (event.routeKey !== routeKey(mcpRoutes.callMcp)) return json(200, protectedResource(ports.issuers, event));
  const who = await mcpCallerOf(ports, event);
  const body = rawBody(event);
  if (body.length > MCP_BODY_MAX_BYTES) {
    throw new Problem(
      413,
      'TOO_LARGE',
      `the body has ${body.length} bytes; at most ${MCP_BODY_MAX_BYTES} are accepted`,
    );
  }
  requireScope(who, body, event);
  const { fetch } = createMcpHandler(() => mcpServer(ports, who), {
    // A subscription would be a stream without end.
    maxSubscriptions: 0,
    keepAliveMs: 0,
    onerror: (error) => ports.log.warn('a message of an MCP client was refused', { error }),
  });
  const headers = new Headers({ ...UNLESS_SENT, ...(event.headers as Record<string, string>) });
  if (headers.get('accept') === '*/*') headers.set('accept', UNLESS_SENT.accept);
  const response = await fetch(
    new Request(`${originOf(event)}/mcp`, { method: 'POST', headers, body: new Uint8Array(body) }),
  );
  return assertResponseFits({
    statusCode: response.status,
    headers: { 'content-type': response.headers.get('content-type') ?? 'application/json' },
    body: await response.text(),
  });
}

/** OAuth clients ask for the missing scope when they read this challenge. */
function requireScope(who: McpCaller, body: Buffer, event: HttpEvent): void {
  const allowed = 'caller' in who ? who.caller.tools : undefined;
  const tool = allowed && toolNamed(calledName(body));
  if (!allowed || tool === undefined || allowed.includes(tool)) return;
  const challenge = `Bearer error="insufficient_scope", scope="${scopeOf(tool)}", resource_metadata="${metadataUrl(event)}"`;
  throw new Problem(
    403,
    'FORBIDDEN',
    `the token lacks the scope ${scopeOf(tool)}; sign in again with it`,
    {},
    {
      'www-authenticate': challenge,
    },
  );
}

/** Empty for any other message. The server itself says what is wrong with a malformed one. */
function calledName(body: Buffer): string {
  try {
    const { method, params } = JSON.parse(body.toString('utf8'));
    return method === 'tools/call' ? String(params?.name) : '';
  } catch {
    return '';
  }
}

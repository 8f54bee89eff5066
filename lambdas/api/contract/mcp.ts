import * as z from 'zod';
import { route } from './route.ts';
import { json } from './schemas.ts';

/** More than the largest input of a tool. */
export const MCP_BODY_MAX_BYTES = 512 * 1024;

const ProtectedResource = z.object({
  resource: z.string().meta({ description: 'The URL of the MCP server' }),
  resource_name: z.string(),
  authorization_servers: z.array(z.string()).meta({ description: 'The OIDC issuers of the stage' }),
  scopes_supported: z.array(z.string()).meta({ example: ['tool:github.labels.add'] }),
  bearer_methods_supported: z.array(z.string()),
});
export type ProtectedResource = z.infer<typeof ProtectedResource>;

const metadata = {
  method: 'GET',
  right: 'public',
  summary: 'Returns the OAuth metadata of the MCP server (RFC 9728): its issuers, and a scope for each tool',
  responses: { 200: ProtectedResource },
} as const;

/** The MCP server: the governed tools of a tenant for any MCP client (docs/mcp.md). */
export const mcpRoutes = {
  callMcp: route({
    method: 'POST',
    path: '/mcp',
    right: 'runs:start',
    summary: 'Takes one message of an MCP client (streamable HTTP, stateless)',
    description:
      'The tools are the operations of the tenant. Each call is an action: policy and people decide on it. Besides an API key ' +
      'or a token of a person, the token of a session is accepted, as `Authorization: Bearer`.',
    body: json<Record<string, unknown>>('A JSON-RPC message'),
    bodyMaxBytes: MCP_BODY_MAX_BYTES,
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    responses: { 200: json('The JSON-RPC response') },
  }),
  getProtectedResource: route({ ...metadata, path: '/.well-known/oauth-protected-resource' }),
  getProtectedResourceOfPath: route({ ...metadata, path: '/.well-known/oauth-protected-resource/mcp' }),
};

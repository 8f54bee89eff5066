import { once } from 'node:events';
import {
  CLIENT_CAPABILITIES_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import { INSTRUCTIONS, SERVER_CAPABILITIES, SERVER_NAME } from '../../lambdas/api/mcp/texts.ts';
import type { Api } from '../client/api-client.ts';
import { packageVersion } from '../version.ts';

/** The version in which each request says everything about its client, so that the stage needs no connection. */
const PROTOCOL_VERSION = '2026-07-28';

type Params = Record<string, unknown>;

const Response = z.looseObject({
  result: z.looseObject({}).optional(),
  error: z.looseObject({ code: z.int(), message: z.string(), data: z.unknown().optional() }).optional(),
});

/**
 * Serves the tools of a stage over stdin and stdout, until the client closes them. Everything is decided by the stage: each
 * request is sent to its MCP server, with the credential of this command.
 */
export async function serveOverStdio(api: Pick<Api, 'call'>): Promise<void> {
  const closed = Promise.race([once(process.stdin, 'end'), once(process.stdin, 'close')]);
  const handle = serveStdio(() => stdioServer(api), {
    onerror: (error) => process.stderr.write(`${error.message}\n`),
  });
  await closed;
  await handle.close();
}

function stdioServer(api: Pick<Api, 'call'>): Server {
  const server = new Server(
    { name: SERVER_NAME, version: packageVersion() },
    { capabilities: SERVER_CAPABILITIES, instructions: INSTRUCTIONS },
  );
  const task = { params: z.looseObject({ taskId: z.string() }) };
  server.setRequestHandler('tools/list', async ({ params }, context) => {
    return (await forward(api, 'tools/list', params ?? {}, context)) as { tools: [] };
  });
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    return (await forward(api, 'tools/call', params, context, params.name)) as { content: [] };
  });
  for (const method of ['tasks/get', 'tasks/cancel']) {
    server.setRequestHandler(method, task, (params, context) => forward(api, method, params, context, params.taskId));
  }
  return server;
}

/** The headers repeat parts of the message, as the protocol requires it over HTTP. */
async function forward(
  api: Pick<Api, 'call'>,
  method: string,
  { _meta, ...params }: Params,
  { mcpReq }: ServerContext,
  name?: string,
): Promise<Params> {
  const envelope: Record<string, unknown> = { ...mcpReq.envelope };
  const meta = {
    [PROTOCOL_VERSION_META_KEY]: PROTOCOL_VERSION,
    [CLIENT_CAPABILITIES_META_KEY]: envelope[CLIENT_CAPABILITIES_META_KEY] ?? {},
  };
  const received = await api.call('POST /mcp', {
    body: { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } },
    headers: {
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': PROTOCOL_VERSION,
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
    },
  });
  const { result, error } = Response.parse(received);
  if (result) return result;
  throw new ProtocolError(error?.code ?? ProtocolErrorCode.InternalError, error?.message ?? 'no result', error?.data);
}

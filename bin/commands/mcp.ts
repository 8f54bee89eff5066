import { Api } from '../client/api-client.ts';
import type { Command } from './command.ts';
import { EXIT } from './failure.ts';

export const mcp: Command = {
  name: 'mcp',
  args: [],
  description: 'serve the governed tools to an MCP client, over stdin and stdout',
  details:
    'An MCP client starts this command. Policy and people decide on every call of a tool. It uses the credential of any other\n' +
    'command, or the token of a session in COUNTERSIGN_SESSION_TOKEN. docs/mcp.md shows how to configure clients.',
  options: {},
  async run(call) {
    const token = call.environment.COUNTERSIGN_SESSION_TOKEN;
    const api = token ? new Api({ url: call.url, headers: { authorization: `Bearer ${token}` } }) : call.api();
    // Loaded here: the packages of the protocol would slow down the start of every other command.
    const { serveOverStdio } = await import('../mcp/stdio-server.ts');
    await serveOverStdio(api);
    return EXIT.ok;
  },
};

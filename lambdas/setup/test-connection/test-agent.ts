import type { Access } from '../../connectors/connector.ts';
import { readAgentCard } from '../../connectors/session/a2a-provider.ts';
import type { Observed } from './test-connection.ts';

/** Reads the card of an agent that speaks A2A. It starts no session. */
export async function testAgent(access: Access): Promise<Observed[]> {
  const { canNotify } = await readAgentCard(access, access.baseUrl);
  const ends = canNotify ? 'it reports when its sessions end' : 'it does not report when its sessions end';
  return [{ level: 'ok', text: `the agent card offers A2A 1.0; ${ends}` }];
}

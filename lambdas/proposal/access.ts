import type { Access, Operation } from '../connectors/connector.ts';
import type { Worker } from '../worker/worker.ts';

/** For operations that reach nothing of the tenant's own. */
const NO_CONNECTION: Access = { baseUrl: '', instance: '', credential: undefined };

export async function accessFor(
  { connections }: Pick<Worker, 'connections'>,
  tenant: string,
  { connection }: Pick<Operation, 'connection'>,
): Promise<Access> {
  return connection === undefined ? NO_CONNECTION : connections.open(tenant, connection);
}

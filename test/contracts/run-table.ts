import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { inject } from 'vitest';
import { startDynamoDb } from '../../local/dynamodb/dynamodb.ts';
import { createTables, tablesOf } from '../../local/dynamodb/tables.ts';
import { readAssembly } from '../../local/template/synthesize.ts';
import { resolveTemplate } from '../../local/template/template.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';

/** The run table of the synthesized template, on the embedded engine. */
export async function openRunTable(): Promise<{ client: DynamoDBClient; table: string; close(): Promise<void> }> {
  const { template, stackName } = readAssembly(inject('assemblies').local);
  const stack = resolveTemplate(template, { stackName });
  const [runTable] = tablesOf(stack);
  if (!runTable) throw new Error('the template has no table');
  const folder = temporaryFolder();
  const engine = await startDynamoDb({ dataFolder: folder.path, log: () => {}, env: {} });
  await createTables(engine.url, stack);
  const client = new DynamoDBClient({
    endpoint: engine.url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  return {
    client,
    table: runTable.ref,
    close: async () => {
      client.destroy();
      await engine.stop();
      folder.remove();
    },
  };
}

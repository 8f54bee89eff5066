import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { inject } from 'vitest';
import { createTables, tablesOf } from '../../../local/dynamodb/tables.ts';
import { readAssembly } from '../../../local/template/synthesize.ts';
import { resolveTemplate } from '../../../local/template/template.ts';
import { startDynoxide } from '../../fakes/dynoxide.ts';
import { dynoxideClient } from '../../fakes/dynoxide-client.ts';

/** The run table of the synthesized template, on an engine that is not our own. */
export async function openRunTable(): Promise<{ client: DynamoDBClient; table: string; close(): Promise<void> }> {
  const { template, stackName } = readAssembly(inject('assemblies').local);
  const stack = resolveTemplate(template, { stackName });
  const [runTable] = tablesOf(stack);
  if (!runTable) throw new Error('the template has no table');
  const engine = await startDynoxide();
  await createTables(engine.url, stack);
  const client = dynoxideClient(engine.url);
  return {
    client,
    table: runTable.ref,
    close: async () => {
      client.destroy();
      await engine.stop();
    },
  };
}

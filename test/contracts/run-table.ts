import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { App, Stack } from 'aws-cdk-lib';
import { RunTable } from '../../lib/run-table.ts';
import { createTables, startDynamoDb } from '../../local/dynamodb.ts';
import { resolveTemplate } from '../../local/template.ts';
import { temporaryFolder } from '../local/services/wire.ts';

/** The run table as the stack deploys it, on the embedded engine. */
export async function openRunTable(): Promise<{ client: DynamoDBClient; table: string; close(): Promise<void> }> {
  const folder = temporaryFolder();
  const engine = await startDynamoDb({ dataFolder: folder.path, log: () => {}, env: {} });
  const stack = resolveTemplate(runTableTemplate(), { stackName: 'Contracts' });
  await createTables(engine.url, stack);
  const client = new DynamoDBClient({
    endpoint: engine.url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  return {
    client,
    table: stack.ofType('AWS::DynamoDB::GlobalTable')[0]?.ref ?? '',
    close: async () => {
      client.destroy();
      await engine.stop();
      folder.remove();
    },
  };
}

/** Only the table's own construct: its keys and indexes are spelled there and nowhere else. */
function runTableTemplate() {
  const app = new App({ analyticsReporting: false });
  const stack = new Stack(app, 'Contracts');
  new RunTable(stack, 'RunTable', {
    stage: 'contracts',
    kind: 'dev',
    tenants: ['acme'],
    workerConcurrency: 2,
    evidenceRetentionDays: 1,
  });
  return app.synth().getStackByName('Contracts').template;
}

import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDefinitions } from '../../lambdas/pipeline/dynamo-definitions.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import type { TestHost } from './test-host.ts';

/** Longer than a warm function keeps what it knows of automations. */
const KNOWN_EVERYWHERE_AFTER_MS = 6_000;

/** Publishes a workflow, and an automation that starts it for a GitHub event no other automation waits for. */
export async function publish(
  host: TestHost,
  { name, event, steps }: { name: string; event: string; steps: object[] },
): Promise<void> {
  const client = new DynamoDBClient(host.clientConfig());
  const definitions = new DynamoDefinitions(client, host.tableName);
  await definitions.publishWorkflow('acme', Workflow.parse({ name, steps }), 1);
  const trigger = { source: 'github' as const, event };
  await definitions.saveAutomation('acme', { name, enabled: true, trigger, workflow: { name, version: 1 } });
  client.destroy();
  await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
}

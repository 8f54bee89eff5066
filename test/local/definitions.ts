import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { Automation } from '../../lambdas/pipeline/definitions.ts';
import { DynamoDefinitions } from '../../lambdas/pipeline/dynamo-definitions.ts';
import { TenantSettings } from '../../lambdas/run/caps.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import type { TestHost } from './test-host.ts';

/** Longer than a warm function keeps what it knows of automations and settings. */
const KNOWN_EVERYWHERE_AFTER_MS = 6_000;

/** Publishes a workflow, and an automation that starts it for a GitHub event no other automation waits for. */
export async function publish(
  host: TestHost,
  { event, ...workflow }: { event: string; name: string; steps: object[] } & Partial<Workflow>,
): Promise<void> {
  const client = new DynamoDBClient(host.clientConfig());
  const definitions = new DynamoDefinitions(client, host.tableName);
  const { name } = workflow;
  await definitions.publishWorkflow('acme', Workflow.parse(workflow), 1);
  const trigger = { source: 'github', event };
  await definitions.saveAutomation('acme', Automation.parse({ name, trigger, workflow: { name, version: 1 } }));
  client.destroy();
  await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
}

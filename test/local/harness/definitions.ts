import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type * as z from 'zod';
import { Automation } from '../../../lambdas/pipeline/definitions.ts';
import { DynamoDefinitions } from '../../../lambdas/pipeline/dynamo-definitions.ts';
import { Workflow } from '../../../lambdas/workflow/workflow.ts';
import { byTest } from '../../fakes/by-test.ts';
import type { TestHost } from './test-host.ts';

/** Longer than a warm function caches automations. */
const KNOWN_EVERYWHERE_AFTER_MS = 61_000;

/** Publishes a workflow, and an automation that starts it for a GitHub event no other automation waits for. */
export async function publish(
  host: TestHost,
  { event, ...source }: { event: string; steps: object[] } & Omit<z.input<typeof Workflow>, 'steps'>,
): Promise<void> {
  const workflow = Workflow.parse(source);
  const { name } = workflow;
  const trigger = { source: 'github', event };
  const started = { workflow: { name, version: 1 } };
  const automation = { ...Automation.parse({ name, trigger, ...started }), ...started };
  const client = new DynamoDBClient(host.clientConfig());
  const definitions = new DynamoDefinitions(client, host.tableName);
  await definitions.publishWorkflow('acme', workflow, 1, byTest());
  await definitions.saveAutomation('acme', automation, byTest());
  client.destroy();
  await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
}

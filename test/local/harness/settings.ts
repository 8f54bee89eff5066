import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDefinitions } from '../../../lambdas/pipeline/dynamo-definitions.ts';
import { TenantSettings } from '../../../lambdas/run/settings/caps.ts';
import { byTest } from '../../fakes/by-test.ts';
import type { TestHost } from './test-host.ts';

/** Longer than a warm function caches settings. */
const KNOWN_EVERYWHERE_AFTER_MS = 61_000;

export async function saveSettings(host: TestHost, settings: object): Promise<void> {
  const client = new DynamoDBClient(host.clientConfig());
  await new DynamoDefinitions(client, host.tableName).saveSettings('acme', TenantSettings.parse(settings), byTest());
  client.destroy();
  await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
}

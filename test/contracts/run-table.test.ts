import { afterAll, beforeAll } from 'vitest';
import { DynamoApiKeys } from '../../lambdas/api/dynamo-api-keys.ts';
import { DynamoDefinitions } from '../../lambdas/pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../../lambdas/run/dynamo-run-store.ts';
import { DynamoWorkflowCatalog } from '../../lambdas/workflow/dynamo-workflow-catalog.ts';
import { MemoryApiKeys } from '../fakes/memory-api-keys.ts';
import { MemoryDefinitions } from '../fakes/memory-definitions.ts';
import { MemoryRunStore } from '../fakes/memory-run-store.ts';
import { describeWorkflowCatalogContract } from '../workflow/workflow-catalog-contract.ts';
import { describeApiKeysContract } from './api-keys-contract.ts';
import { describeDefinitionsContract } from './definitions-contract.ts';
import { describeRunStoreContract } from './run-store-contract.ts';
import { openRunTable } from './run-table.ts';

/** One engine and one table for all three ports that live in it; the contracts keep out of each other's way. */
let run: Awaited<ReturnType<typeof openRunTable>>;
beforeAll(async () => {
  run = await openRunTable();
});
afterAll(() => run.close());

const close = async () => {};
/** Conflicts of transactions are tried again at once: nothing else here would pass the time. */
const pause = { random: () => 0, sleep: async () => {} };

describeRunStoreContract('memory', async () => ({ store: new MemoryRunStore(), close }));
describeRunStoreContract('DynamoDB', async () => ({ store: new DynamoRunStore(run.client, run.table, pause), close }));

describeDefinitionsContract('memory', async () => ({ definitions: new MemoryDefinitions(), close }));
describeDefinitionsContract('DynamoDB', async () => ({
  definitions: new DynamoDefinitions(run.client, run.table),
  close,
}));

describeWorkflowCatalogContract('DynamoDB', async () => ({
  definitions: new DynamoDefinitions(run.client, run.table),
  catalog: new DynamoWorkflowCatalog(run.client, run.table),
}));

describeApiKeysContract('memory', async () => ({ keys: new MemoryApiKeys(), close }));
describeApiKeysContract('DynamoDB', async () => ({ keys: new DynamoApiKeys(run.client, run.table), close }));

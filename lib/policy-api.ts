import { Construct } from 'constructs';
import { ApiEnvironment } from '../lambdas/api/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import type { CountersignHttpApi } from './http-api.ts';
import type { ListCursors } from './list-cursors.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';

/** A page of a replay reads ten runs and decides each of their steps again. */
const POLICY_API_TIMEOUT = seconds(20);

interface PolicyApiProps {
  bundles: FunctionBundles;
  httpApi: CountersignHttpApi;
  cursors: ListCursors;
  runTable: RunTable;
}

/** The routes about policies: read, publish, and replay recorded decisions. */
export class PolicyApi extends Construct {
  constructor(scope: Construct, id: string, { bundles, httpApi, cursors, runTable }: PolicyApiProps) {
    super(scope, id);
    const policies = new NodeFunction(this, 'Policies', {
      bundles,
      entry: 'api/policies/policies',
      description: 'Returns, publishes and replays policies',
      schema: ApiEnvironment,
      environment: { RUN_TABLE: runTable.table.tableName, ...cursors.environment },
      timeout: POLICY_API_TIMEOUT,
    });
    cursors.allow(policies);
    runTable.allow(policies, ['GetItem', 'PutItem'], ['TENANT']);
    runTable.allow(policies, ['PutItem'], ['CHANGE']);
    runTable.allowIndexQuery(policies, 'byTenant');
    runTable.allow(policies, ['BatchGetItem', 'Query'], ['RUN']);
    httpApi.serve('policies', policies);
  }
}

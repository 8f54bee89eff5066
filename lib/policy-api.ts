import { Construct } from 'constructs';
import { ApiEnvironment } from '../lambdas/api/environment.ts';
import { API_ROUTES } from '../lambdas/api/routes.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import type { KeyedRoutes } from './keyed-routes.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';

/** A page of a replay reads ten runs and decides about each of their steps again. */
const POLICY_API_TIMEOUT = seconds(20);

interface PolicyApiProps {
  bundles: FunctionBundles;
  keyed: KeyedRoutes;
  runTable: RunTable;
}

/** What decides about writes: shown, published, and tried on recorded decisions. */
export class PolicyApi extends Construct {
  constructor(scope: Construct, id: string, { bundles, keyed, runTable }: PolicyApiProps) {
    super(scope, id);
    const policies = new NodeFunction(this, 'Policies', {
      bundles,
      entry: 'api/policies/policies',
      description: 'Shows, publishes and replays policies',
      schema: ApiEnvironment,
      environment: { RUN_TABLE: runTable.table.tableName, ...keyed.listEnvironment },
      timeout: POLICY_API_TIMEOUT,
    });
    keyed.allowLists(policies);
    runTable.allow(policies, ['GetItem', 'PutItem'], ['TENANT']);
    runTable.allow(policies, ['PutItem'], ['CHANGE']);
    runTable.allowIndexQuery(policies, 'byTenant');
    runTable.allow(policies, ['BatchGetItem', 'Query'], ['RUN']);
    keyed.serve(API_ROUTES.policies, policies);
  }
}

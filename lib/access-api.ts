import { Construct } from 'constructs';
import { ApiEnvironment } from '../lambdas/api/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import type { CountersignHttpApi } from './http-api.ts';
import type { ListCursors } from './list-cursors.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';

interface AccessApiProps {
  bundles: FunctionBundles;
  httpApi: CountersignHttpApi;
  cursors: ListCursors;
  runTable: RunTable;
}

/** The routes about the caller and about API keys. Only this function can create keys. */
export class AccessApi extends Construct {
  constructor(scope: Construct, id: string, { bundles, httpApi, cursors, runTable }: AccessApiProps) {
    super(scope, id);
    const access = new NodeFunction(this, 'Access', {
      bundles,
      entry: 'api/access/access',
      description: 'Creates, lists and revokes API keys; returns the caller',
      schema: ApiEnvironment,
      environment: { RUN_TABLE: runTable.table.tableName, ...cursors.environment },
      timeout: seconds(10),
    });
    cursors.allow(access);
    runTable.allow(access, ['GetItem', 'Query'], ['TENANT']);
    runTable.allow(access, ['GetItem', 'BatchGetItem', 'PutItem', 'DeleteItem'], ['APIKEY']);
    runTable.allow(access, ['GetItem', 'Query', 'PutItem', 'DeleteItem'], ['KEYS']);
    runTable.allow(access, ['PutItem'], ['CHANGE']);
    httpApi.serve('access', access);
  }
}

import { Construct } from 'constructs';
import { AccessEnvironment } from '../../lambdas/api/environment.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import type { LiveFeed } from '../live-feed.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { CountersignHttpApi } from './http-api.ts';
import type { ListCursors } from './list-cursors.ts';

interface AccessApiProps {
  bundles: FunctionBundles;
  httpApi: CountersignHttpApi;
  cursors: ListCursors;
  runTable: RunTable;
  liveFeed: LiveFeed | undefined;
}

/** The routes about the caller and their credentials: API keys, which only this function can create, and tickets. */
export class AccessApi extends Construct {
  constructor(scope: Construct, id: string, { bundles, httpApi, cursors, runTable, liveFeed }: AccessApiProps) {
    super(scope, id);
    const access = new NodeFunction(this, 'Access', {
      bundles,
      entry: 'api/access/access',
      description: 'Creates, lists and revokes API keys and tickets; returns the caller',
      schema: AccessEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        ...cursors.environment,
        ...(liveFeed && { LIVE_URL: liveFeed.url }),
      },
      timeout: seconds(10),
    });
    cursors.allow(access);
    runTable.allow(access, ['GetItem', 'Query'], ['TENANT']);
    runTable.allow(access, ['GetItem', 'BatchGetItem', 'PutItem', 'DeleteItem'], ['APIKEY']);
    runTable.allow(access, ['GetItem', 'Query', 'PutItem', 'DeleteItem'], ['KEYS']);
    runTable.allow(access, ['PutItem'], ['CHANGE']);
    if (liveFeed) runTable.allow(access, ['PutItem'], ['TICKET']);
    httpApi.serve('access', access);
  }
}

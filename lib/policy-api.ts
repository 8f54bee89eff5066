import { HttpMethod, type IHttpRouteAuthorizer } from 'aws-cdk-lib/aws-apigatewayv2';
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import { ApiEnvironment } from '../lambdas/api/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import type { FrontDoor } from './front-door.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';

/** A page of a replay reads ten runs and decides about each of their steps again. */
const POLICY_API_TIMEOUT = seconds(20);

interface PolicyApiProps {
  bundles: FunctionBundles;
  door: FrontDoor;
  runTable: RunTable;
  authorizer: IHttpRouteAuthorizer;
  cursorSecret: ISecret;
}

/** What decides about writes: shown, published, and tried on recorded decisions. */
export class PolicyApi extends Construct {
  constructor(scope: Construct, id: string, { bundles, door, runTable, authorizer, cursorSecret }: PolicyApiProps) {
    super(scope, id);
    const policies = new NodeFunction(this, 'Policies', {
      bundles,
      entry: 'api/policies',
      description: 'Shows, publishes and replays policies',
      schema: ApiEnvironment,
      environment: { RUN_TABLE: runTable.table.tableName, CURSOR_SECRET_ARN: cursorSecret.secretArn },
      timeout: POLICY_API_TIMEOUT,
    });
    policies.allow(['secretsmanager:GetSecretValue'], [cursorSecret.secretArn]);
    runTable.allow(policies, ['GetItem', 'PutItem'], ['TENANT']);
    runTable.allowIndexQuery(policies, 'byTenant');
    runTable.allow(policies, ['BatchGetItem', 'Query'], ['RUN']);
    door.guarded(HttpMethod.GET, '/api/v1/policies', policies, authorizer);
    door.guarded(HttpMethod.PUT, '/api/v1/policies', policies, authorizer);
    door.guarded(HttpMethod.POST, '/api/v1/policies/replay', policies, authorizer);
  }
}

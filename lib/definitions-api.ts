import { HttpMethod, type IHttpRouteAuthorizer } from 'aws-cdk-lib/aws-apigatewayv2';
import type { ISecret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import { ApiEnvironment } from '../lambdas/api/environment.ts';
import { PlanEnvironment } from '../lambdas/workflow/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import type { FrontDoor } from './front-door.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';
import { TenantSecrets } from './tenant-secrets.ts';

const DEFINITIONS_TIMEOUT = seconds(10);
/** A plan looks at one target after the other; API Gateway waits 30 s for an answer. */
const PLAN_TIMEOUT = seconds(29);

interface DefinitionsApiProps {
  bundles: FunctionBundles;
  config: StageConfig;
  door: FrontDoor;
  runTable: RunTable;
  authorizer: IHttpRouteAuthorizer;
  cursorSecret: ISecret;
}

/** What people define: workflows, published and planned, the automations that run them, and the people themselves. */
export class DefinitionsApi extends Construct {
  constructor(scope: Construct, id: string, props: DefinitionsApiProps) {
    super(scope, id);
    const { bundles, config, door, runTable, authorizer, cursorSecret } = props;
    const RUN_TABLE = runTable.table.tableName;
    const definitions = new NodeFunction(this, 'Definitions', {
      bundles,
      entry: 'api/definitions',
      description: 'Publishes and shows workflows, automations and people',
      schema: ApiEnvironment,
      environment: { RUN_TABLE, CURSOR_SECRET_ARN: cursorSecret.secretArn },
      timeout: DEFINITIONS_TIMEOUT,
    });
    definitions.allow(['secretsmanager:GetSecretValue'], [cursorSecret.secretArn]);
    runTable.allow(definitions, ['GetItem', 'Query', 'PutItem'], ['TENANT']);
    for (const [method, path] of [
      [HttpMethod.POST, '/api/v1/workflows'],
      [HttpMethod.POST, '/api/v1/workflows/validate'],
      [HttpMethod.GET, '/api/v1/workflows'],
      [HttpMethod.GET, '/api/v1/workflows/{name}'],
      [HttpMethod.GET, '/api/v1/workflows/{name}/versions/{version}'],
      [HttpMethod.GET, '/api/v1/automations'],
      [HttpMethod.GET, '/api/v1/automations/{name}'],
      [HttpMethod.PUT, '/api/v1/automations/{name}'],
      [HttpMethod.GET, '/api/v1/people'],
      [HttpMethod.GET, '/api/v1/people/{id}'],
      [HttpMethod.PUT, '/api/v1/people/{id}'],
      [HttpMethod.PUT, '/api/v1/people/{id}/away'],
    ] as const) {
      door.guarded(method, path, definitions, authorizer);
    }

    // Plans look at targets with credentials of their own, which the operator gives no right to write.
    const planSecrets = new TenantSecrets(this, 'PlanSecrets', {
      ...config,
      purpose: 'plan-connections',
      description: 'Read-only credentials for plans, by connection: {"servicenow": {...}, "github": {...}, ...}',
      generatedEntry: 'unused',
    });
    const plan = new NodeFunction(this, 'Plan', {
      bundles,
      entry: 'api/plan',
      description: 'Says what a run would do, without doing it',
      schema: PlanEnvironment,
      environment: { RUN_TABLE, PLAN_SECRET_ARNS: planSecrets.arnsByTenant(), STAGE_KIND: config.kind },
      timeout: PLAN_TIMEOUT,
    });
    planSecrets.readableBy(plan);
    runTable.allow(plan, ['GetItem', 'Query'], ['TENANT']);
    door.guarded(HttpMethod.POST, '/api/v1/workflows/simulate', plan, authorizer);
  }
}

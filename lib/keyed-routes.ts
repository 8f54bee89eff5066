import { Duration, Validations } from 'aws-cdk-lib';
import { HttpMethod, type IHttpRouteAuthorizer } from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaAuthorizer, HttpLambdaResponseType } from 'aws-cdk-lib/aws-apigatewayv2-authorizers';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import { AuthorizerEnvironment } from '../lambdas/api/environment.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import type { CountersignHttpApi } from './http-api.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';

const AUTHORIZER_TIMEOUT = seconds(10);
/** Whoever was deleted or demoted loses the rights of their keys with the next request: no verdict is cached. */
const VERDICT_CACHED = Duration.seconds(0);

interface KeyedRoutesProps {
  bundles: FunctionBundles;
  httpApi: CountersignHttpApi;
  runTable: RunTable;
}

/** The routes behind API keys: what says whom a key belongs to, and what lists are paged with. */
export class KeyedRoutes extends Construct {
  /** What everything that gives lists has in its environment. */
  readonly listEnvironment: { CURSOR_SECRET_ARN: string };
  readonly #httpApi: CountersignHttpApi;
  readonly #authorizer: IHttpRouteAuthorizer;

  constructor(scope: Construct, id: string, { bundles, httpApi, runTable }: KeyedRoutesProps) {
    super(scope, id);
    this.#httpApi = httpApi;
    const authorize = new NodeFunction(this, 'Authorize', {
      bundles,
      entry: 'api/authorizer/authorizer',
      description: 'Says who an API key belongs to, and what they may do',
      schema: AuthorizerEnvironment,
      environment: { RUN_TABLE: runTable.table.tableName },
      timeout: AUTHORIZER_TIMEOUT,
    });
    runTable.allow(authorize, ['GetItem'], ['APIKEY', 'TENANT']);
    this.#authorizer = new HttpLambdaAuthorizer('ApiKey', authorize, {
      responseTypes: [HttpLambdaResponseType.SIMPLE],
      identitySource: ['$request.header.x-api-key'],
      resultsCacheTtl: VERDICT_CACHED,
    });
    this.listEnvironment = { CURSOR_SECRET_ARN: this.#cursorSecret().secretArn };
  }

  /** Has a function answer these routes, `GET /api/v1/runs`. */
  serve(routes: readonly string[], by: NodeFunction): void {
    for (const route of routes) {
      const [method = '', path = ''] = route.split(' ');
      this.#httpApi.guarded(HttpMethod[method as keyof typeof HttpMethod], path, by, this.#authorizer);
    }
  }

  /** Lets a function give lists page by page. */
  allowLists(to: NodeFunction): void {
    to.allow(['secretsmanager:GetSecretValue'], [this.listEnvironment.CURSOR_SECRET_ARN]);
  }

  #cursorSecret(): Secret {
    const secret = new Secret(this, 'CursorSecret', { description: 'Signs the cursors of lists' });
    Validations.of(secret).acknowledge({
      id: 'AwsSolutions-SMG4',
      reason:
        'It only keeps cursors from being made up; replacing it by hand just restarts lists that are being paged.',
    });
    return secret;
  }
}

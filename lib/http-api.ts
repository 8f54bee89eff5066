import { Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { type CfnRoute, type CfnStage, HttpApi, HttpMethod, type HttpRoute } from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaAuthorizer, HttpLambdaResponseType } from 'aws-cdk-lib/aws-apigatewayv2-authorizers';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { type FunctionGroup, routesOf } from '../lambdas/api/contract/index.ts';
import { AuthorizerEnvironment } from '../lambdas/api/environment.ts';
import { OWN_URL } from '../lambdas/entry/oidc-issuer.ts';
import type { FunctionBundles } from './bundle-functions.ts';
import { InvokeIntegration, InvokeRole } from './invoke-role.ts';
import type { ListCursors } from './list-cursors.ts';
import { NodeFunction, seconds } from './node-function.ts';
import type { RunTable } from './run-table.ts';
import type { StageConfig } from './stage-config.ts';

/** API Gateway throttles callers above this rate before they reach the functions. */
const REQUESTS_PER_SECOND_MAX = 500;
const BURST_MAX = 1_000;
/** Requests a second, and at once, where the rate above does not fit. Each route has its own. */
const THROTTLED: Partial<Record<FunctionGroup, { rate: number; burst: number }>> = {
  // Files of up to 1.7 MB for everybody: at the rate above they would cost some hundred dollars an hour. A page needs five.
  docs: { rate: 20, burst: 50 },
  // Everybody may try to enrol. A thousand agents that start again at once need a minute.
  agentEnrol: { rate: 20, burst: 100 },
  // A thousand agents without the socket send 200 syncs a second. Their other requests have limits of their own.
  agentWork: { rate: 300, burst: 600 },
};
const AUTHORIZER_TIMEOUT = seconds(10);
/** Nothing is cached: a deleted or demoted person loses their rights with the next request. */
const AUTHORIZATION_CACHED = Duration.seconds(0);

const ACCESS_LOG_FORMAT = JSON.stringify({
  requestId: '$context.requestId',
  at: '$context.requestTime',
  route: '$context.routeKey',
  status: '$context.status',
  sourceIp: '$context.identity.sourceIp',
  latencyMs: '$context.responseLatency',
});

/** Why routes without an API key are safe, for cdk-nag. */
const WITHOUT_KEY = {
  signed: 'The sender signs the request with a secret of the tenant or its own key; the function verifies it first.',
  public: 'The response is public: it contains nothing of any tenant.',
};

interface HttpApiProps {
  bundles: FunctionBundles;
  config: StageConfig;
  runTable: RunTable;
  /** The authorizer is created beside the cursor secret, so that its logical id stays the same. */
  cursors: ListCursors;
}

/** Receives every HTTP request and passes it to the function that the route contract names. */
export class CountersignHttpApi extends Construct {
  readonly api: HttpApi;
  /** For environments: the issuers of the stage as JSON. */
  readonly issuers: string;
  readonly #authorizer: HttpLambdaAuthorizer;
  /** API Gateway invokes the functions of the live feed with it, too. */
  readonly invokeRole: InvokeRole;
  readonly #stage: CfnStage;

  constructor(scope: Construct, id: string, { bundles, config, runTable, cursors }: HttpApiProps) {
    super(scope, id);
    this.api = new HttpApi(this, 'Api');
    this.issuers = Stack.of(this).toJsonString(
      config.issuers.map((each) => ({ ...each, issuer: each.issuer.replace(OWN_URL, this.api.apiEndpoint) })),
    );
    const log = new LogGroup(this, 'AccessLog', {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.#stage = this.api.defaultStage?.node.defaultChild as CfnStage;
    this.#stage.accessLogSettings = { destinationArn: log.logGroupArn, format: ACCESS_LOG_FORMAT };
    this.#stage.defaultRouteSettings = {
      throttlingRateLimit: REQUESTS_PER_SECOND_MAX,
      throttlingBurstLimit: BURST_MAX,
    };
    const authorize = new NodeFunction(cursors, 'Authorize', {
      bundles,
      entry: 'api/authorizer/authorizer',
      description: 'Finds the caller of an API key or a token',
      schema: AuthorizerEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        STAGE_KIND: config.kind,
        OWN_URL: this.api.apiEndpoint,
        ISSUERS: this.issuers,
      },
      timeout: AUTHORIZER_TIMEOUT,
    });
    runTable.allow(authorize, ['GetItem'], ['APIKEY', 'TENANT', 'ISSUER', 'IDENTITY']);
    // Once for each person of an earlier release: their identities have no rows.
    runTable.allow(authorize, ['Query'], ['TENANT']);
    runTable.allow(authorize, ['PutItem'], ['IDENTITY']);
    // To record when a key was last used.
    runTable.allow(authorize, ['UpdateItem'], ['APIKEY']);
    runTable.allow(authorize, ['PutItem'], ['KEYS']);
    this.invokeRole = new InvokeRole(scope, 'HttpApiInvokeRole');
    this.invokeRole.allow(authorize);
    // Earlier stacks have an authorizer "ApiKey" with an identity source. An update with an empty list may leave it as it
    // is, so a new authorizer replaces it.
    this.#authorizer = new HttpLambdaAuthorizer('Caller', authorize, {
      responseTypes: [HttpLambdaResponseType.SIMPLE],
      role: this.invokeRole,
      // With an identity source, API Gateway would refuse requests without that header: a caller has a key or a token.
      identitySource: [],
      resultsCacheTtl: AUTHORIZATION_CACHED,
    });
  }

  /**
   * Creates the routes of a function. They share one integration, so that each further route costs one CloudFormation
   * resource.
   */
  serve(group: FunctionGroup, handler: NodeFunction): void {
    const integration = new InvokeIntegration(`${group}Integration`, handler, this.invokeRole);
    for (const { method, path, right } of routesOf(group)) {
      const withoutKey = right === 'public' || right === 'signed' ? WITHOUT_KEY[right] : undefined;
      const created = this.api.addRoutes({
        path,
        methods: [HttpMethod[method]],
        integration,
        ...(withoutKey === undefined && { authorizer: this.#authorizer }),
      });
      const throttled = THROTTLED[group];
      if (throttled) this.#throttle(`${method} ${path}`, created, throttled);
      if (withoutKey === undefined) continue;
      for (const route of created) Validations.of(route).acknowledge({ id: 'AwsSolutions-APIG4', reason: withoutKey });
    }
  }

  /** API Gateway refuses settings of a route that does not exist yet, so the stage comes after the route. */
  #throttle(routeKey: string, routes: readonly HttpRoute[], { rate, burst }: { rate: number; burst: number }): void {
    const settings = { ThrottlingRateLimit: rate, ThrottlingBurstLimit: burst };
    this.#stage.routeSettings = { ...(this.#stage.routeSettings as object), [routeKey]: settings };
    for (const route of routes) this.#stage.addResourceDependency(route.node.defaultChild as CfnRoute);
  }
}

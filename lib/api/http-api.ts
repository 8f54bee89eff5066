import { Lazy, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import { type CfnApi, type CfnStage, HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';
import { type FunctionGroup, routesOf } from '../../lambdas/api/contract/index.ts';
import { routeKey } from '../../lambdas/api/contract/route.ts';
import { AuthorizerEnvironment } from '../../lambdas/api/environment.ts';
import { OWN_URL } from '../../lambdas/entry/oidc-issuer.ts';
import type { OwnDomain } from '../../lambdas/entry/own-domain.ts';
import type { FunctionBundles } from '../bundle-functions.ts';
import { NodeFunction, seconds } from '../node-function.ts';
import type { RunTable } from '../run-table.ts';
import type { StageConfig } from '../stage-config.ts';
import { apiDefinition } from './http-api-definition.ts';
import { InvokeRole } from './invoke-role.ts';
import type { ListCursors } from './list-cursors.ts';

/** API Gateway throttles callers above this rate before they reach the functions. */
const REQUESTS_PER_SECOND_MAX = 500;
const BURST_MAX = 1_000;
/** Requests a second, and at once, where the rate above does not fit. Each route has its own. */
const THROTTLED: Partial<Record<FunctionGroup, { rate: number; burst: number }>> = {
  // Files of up to 1.7 MB for everybody: at the rate above they would cost some hundred dollars an hour. A page needs five.
  docs: { rate: 20, burst: 50 },
  // A client without end: each call is a run.
  mcp: { rate: 50, burst: 100 },
  // Everybody may try to enrol. A thousand agents that start again at once need a minute.
  agentEnrol: { rate: 20, burst: 100 },
  // A thousand agents without the socket send 200 syncs a second. Their other requests have limits of their own.
  agentWork: { rate: 300, burst: 600 },
};
const AUTHORIZER_TIMEOUT = seconds(10);

const ACCESS_LOG_FORMAT = JSON.stringify({
  requestId: '$context.requestId',
  at: '$context.requestTime',
  route: '$context.routeKey',
  status: '$context.status',
  sourceIp: '$context.identity.sourceIp',
  latencyMs: '$context.responseLatency',
});

/** Names a function that knows the URL of the API: `invokedArn` says why. */
export const apiFunctionName = ({ stage }: StageConfig, name: string): string => `countersign-${stage}-${name}`;

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
  /** The URL that callers use: of the stage's own domain, or of the API. */
  readonly url: string;
  /** If all requests must come through CloudFront: what it sends with them. */
  readonly originSecret: string | undefined;
  /** For environments: the issuers of the stage as JSON. */
  readonly issuers: string;
  /** API Gateway invokes the functions of the live feed with it, too. */
  readonly invokeRole: InvokeRole;
  readonly #stage: CfnStage;
  readonly #ownDomain: Record<string, string>;
  readonly #served = new Map<FunctionGroup, NodeFunction>();

  constructor(scope: Construct, id: string, { bundles, config, runTable, cursors }: HttpApiProps) {
    super(scope, id);
    this.api = new HttpApi(this, 'Api');
    this.url = config.domain ? `https://${config.domain.name}` : this.api.apiEndpoint;
    this.originSecret = config.firewall ? newOriginSecret(this) : undefined;
    this.#ownDomain = {
      ...(config.domain && { DOMAIN: config.domain.name }),
      ...(this.originSecret && { ORIGIN_SECRET: this.originSecret }),
    } satisfies OwnDomain;
    this.issuers = Stack.of(this).toJsonString(
      config.issuers.map((each) => ({ ...each, issuer: each.issuer.replace(OWN_URL, this.url) })),
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
      name: apiFunctionName(config, 'authorizer'),
      entry: 'api/authorizer/authorizer',
      description: 'Finds the caller of an API key or a token',
      schema: AuthorizerEnvironment,
      environment: {
        RUN_TABLE: runTable.table.tableName,
        STAGE_KIND: config.kind,
        OWN_URL: this.url,
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
    this.#defineApi(config, authorize);
  }

  /** Adds the routes of a function. */
  serve(group: FunctionGroup, handler: NodeFunction): void {
    this.invokeRole.allow(handler);
    this.knowDomain(handler);
    this.#served.set(group, handler);
    const throttled = THROTTLED[group];
    if (!throttled) return;
    const settings = { ThrottlingRateLimit: throttled.rate, ThrottlingBurstLimit: throttled.burst };
    const ofRoutes = routesOf(group).map((route) => [routeKey(route), settings]);
    this.#stage.routeSettings = { ...(this.#stage.routeSettings as object), ...Object.fromEntries(ofRoutes) };
  }

  /** For functions that API Gateway invokes. */
  knowDomain(handler: NodeFunction): void {
    for (const [name, value] of Object.entries(this.#ownDomain)) handler.addEnvironment(name, value);
  }

  /**
   * The API is one resource with an OpenAPI definition: routes, integrations and the authorizer as resources of their own
   * would be a third of the 500 that a template can have.
   */
  #defineApi(config: StageConfig, authorize: NodeFunction): void {
    const api = this.api.node.defaultChild as CfnApi;
    // Both follow from the definition.
    api.name = undefined;
    api.protocolType = undefined;
    const title = `countersign-${config.stage}`;
    const roleArn = this.invokeRole.roleArn;
    api.body = Lazy.any({ produce: () => apiDefinition({ title, roleArn, authorize, served: this.#served }) });
  }
}

/** CloudFormation puts the value itself into the distribution and the functions: none of them has to read the secret. */
function newOriginSecret(scope: Construct): string {
  const secret = new Secret(scope, 'OriginSecret', {
    description: 'CloudFront sends it, so that functions refuse requests that did not pass the firewall',
    generateSecretString: { passwordLength: 48, excludePunctuation: true },
  });
  Validations.of(secret).acknowledge({
    id: 'AwsSolutions-SMG4',
    reason:
      'It gives no rights: requests need their own credentials. A deployment with another logical id replaces it.',
  });
  return secret.secretValue.unsafeUnwrap();
}

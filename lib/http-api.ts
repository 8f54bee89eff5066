import { RemovalPolicy, Validations } from 'aws-cdk-lib';
import {
  type CfnStage,
  HttpApi,
  type HttpMethod,
  type HttpRoute,
  type IHttpRouteAuthorizer,
} from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import type { NodeFunction } from './node-function.ts';

/** Beyond this an outsider is slowed down before our functions are. */
const REQUESTS_PER_SECOND_MAX = 500;
const BURST_MAX = 1_000;

const ACCESS_LOG_FORMAT = JSON.stringify({
  requestId: '$context.requestId',
  at: '$context.requestTime',
  route: '$context.routeKey',
  status: '$context.status',
  sourceIp: '$context.identity.sourceIp',
  latencyMs: '$context.responseLatency',
});

/** The HTTP API: every request from outside comes in here. */
export class CountersignHttpApi extends Construct {
  readonly api: HttpApi;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    this.api = new HttpApi(this, 'Api');
    const log = new LogGroup(this, 'AccessLog', {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const stage = this.api.defaultStage?.node.defaultChild as CfnStage;
    stage.accessLogSettings = { destinationArn: log.logGroupArn, format: ACCESS_LOG_FORMAT };
    stage.defaultRouteSettings = {
      throttlingRateLimit: REQUESTS_PER_SECOND_MAX,
      throttlingBurstLimit: BURST_MAX,
    };
  }

  /** A route behind an authorizer. */
  guarded(method: HttpMethod, path: string, to: NodeFunction, authorizer: IHttpRouteAuthorizer): void {
    this.#route(method, path, to, authorizer);
  }

  /** A route anybody may call, with the reason why that is right. */
  open(method: HttpMethod, path: string, to: NodeFunction, reason: string): void {
    for (const route of this.#route(method, path, to)) {
      Validations.of(route).acknowledge({ id: 'AwsSolutions-APIG4', reason });
    }
  }

  #route(method: HttpMethod, path: string, to: NodeFunction, authorizer?: IHttpRouteAuthorizer): HttpRoute[] {
    const integration = new HttpLambdaIntegration(`${to.node.id}Integration`, to);
    return this.api.addRoutes({ path, methods: [method], integration, authorizer });
  }
}

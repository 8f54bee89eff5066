import { Stack } from 'aws-cdk-lib';
import {
  WebSocketIntegrationType,
  WebSocketRouteIntegration,
  type WebSocketRouteIntegrationConfig,
} from 'aws-cdk-lib/aws-apigatewayv2';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Construct } from 'constructs';
import { InlineRole, type NodeFunction } from '../node-function.ts';

/**
 * With this role API Gateway invokes the functions. A role is one CloudFormation resource for all functions; with
 * permissions, each function would need one of its own, and a template has at most 500 resources.
 */
export class InvokeRole extends InlineRole {
  constructor(scope: Construct, id: string) {
    const description = `${Stack.of(scope).stackName}: API Gateway invokes the functions of the stage`;
    super(scope, id, { service: 'apigateway.amazonaws.com', description });
  }

  allow(handler: NodeFunction): void {
    const resources = [handler.invokedArn];
    this.addToPrincipalPolicy(new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources }));
  }
}

/** The address at which API Gateway invokes a function. */
export function invocationUri(handler: NodeFunction): string {
  const { partition, region } = Stack.of(handler);
  return `arn:${partition}:apigateway:${region}:lambda:path/2015-03-31/functions/${handler.invokedArn}/invocations`;
}

/** Passes what happens on the connections of a WebSocket API to a function, which API Gateway invokes with the role. */
export class InvokeSocketIntegration extends WebSocketRouteIntegration {
  readonly #handler: NodeFunction;
  readonly #role: InvokeRole;

  constructor(id: string, handler: NodeFunction, role: InvokeRole) {
    super(id);
    this.#handler = handler;
    this.#role = role;
    role.allow(handler);
  }

  bind(): WebSocketRouteIntegrationConfig {
    return {
      type: WebSocketIntegrationType.AWS_PROXY,
      uri: invocationUri(this.#handler),
      credentialsRole: this.#role,
    };
  }
}

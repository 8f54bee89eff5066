import { type FunctionGroup, routesOf } from '../../lambdas/api/contract/index.ts';
import type { RouteDefinition } from '../../lambdas/api/contract/route.ts';
import type { NodeFunction } from '../node-function.ts';
import { invocationUri } from './invoke-role.ts';

/** Nothing is cached: a deleted or demoted person loses their rights with the next request. */
const AUTHORIZATION_CACHED_SECONDS = 0;
const AUTHORIZER = 'Caller';
/** The longest that API Gateway waits. */
const INTEGRATION_TIMEOUT_MS = 30_000;

interface Definition {
  title: string;
  /** API Gateway invokes the functions with this role. */
  roleArn: string;
  authorize: NodeFunction;
  /** The function of each group of routes. */
  served: ReadonlyMap<FunctionGroup, NodeFunction>;
}

/**
 * The OpenAPI document that API Gateway makes the HTTP API from, in the form in which it exports one. Callers have
 * another one (`/openapi.json`), which describes bodies and responses.
 */
export function apiDefinition({ title, roleArn, authorize, served }: Definition): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const group of served.keys()) {
    for (const route of routesOf(group)) {
      paths[route.path] = {
        ...(paths[route.path] ?? pathParameters(route)),
        [route.method.toLowerCase()]: operation(group, route),
      };
    }
  }
  const integrations = [...served].map(([group, handler]) => [group, integration(handler, roleArn)]);
  return {
    openapi: '3.0.1',
    info: { title, version: '1' },
    paths,
    components: {
      securitySchemes: { [AUTHORIZER]: authorizer(authorize, roleArn) },
      'x-amazon-apigateway-integrations': Object.fromEntries(integrations),
    },
  };
}

function operation(group: FunctionGroup, { right, summary }: RouteDefinition): object {
  const isKeyed = right !== 'public' && right !== 'signed';
  return {
    responses: { default: { description: summary } },
    ...(isKeyed && { security: [{ [AUTHORIZER]: [] }] }),
    'x-amazon-apigateway-integration': { $ref: `#/components/x-amazon-apigateway-integrations/${group}` },
  };
}

function pathParameters({ path }: RouteDefinition): object {
  const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name);
  if (names.length === 0) return {};
  return { parameters: names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })) };
}

function integration(handler: NodeFunction, roleArn: string): object {
  return {
    type: 'aws_proxy',
    httpMethod: 'POST',
    uri: invocationUri(handler),
    credentials: roleArn,
    connectionType: 'INTERNET',
    payloadFormatVersion: '2.0',
    timeoutInMillis: INTEGRATION_TIMEOUT_MS,
  };
}

/** Has no identity source: with one, API Gateway would refuse requests without that header, and a caller has a key or a token. */
function authorizer(authorize: NodeFunction, roleArn: string): object {
  return {
    type: 'apiKey',
    name: 'authorization',
    in: 'header',
    'x-amazon-apigateway-authorizer': {
      type: 'request',
      authorizerUri: invocationUri(authorize),
      authorizerCredentials: roleArn,
      authorizerPayloadFormatVersion: '2.0',
      authorizerResultTtlInSeconds: AUTHORIZATION_CACHED_SECONDS,
      enableSimpleResponses: true,
    },
  };
}

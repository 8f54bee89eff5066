import type { ResolvedStack } from '../template/template.ts';

export interface HttpRoute {
  apiId: string;
  /** As in the template: `GET /runs/{id}`. */
  routeKey: string;
  method: string;
  segments: string[];
  functionArn: string;
  /** The role with which API Gateway invokes the function. Without one, a permission of the function must allow it. */
  roleArn: string | undefined;
  timeoutMs: number;
  authorizerId: string | undefined;
}

export interface RouteMatch {
  route: HttpRoute;
  pathParameters: Record<string, string>;
}

/** How long an HTTP API waits for an integration, at most. */
const LONGEST_INTEGRATION_MS = 30_000;

type Fields = Record<string, unknown>;

/** The OpenAPI definition of an HTTP API, as far as API Gateway reads it. */
export interface ApiDefinition {
  logicalId: string;
  apiId: string;
  paths: Record<string, Fields>;
  integrations: Record<string, Fields>;
  /** By name: the extension of each security scheme. */
  authorizers: Record<string, Fields>;
}

/** The HTTP APIs of the template. */
export function apiDefinitions(stack: ResolvedStack): ApiDefinition[] {
  const apis = stack
    .ofType('AWS::ApiGatewayV2::Api')
    .filter(({ properties }) => properties.ProtocolType !== 'WEBSOCKET');
  return apis.map(({ logicalId, ref: apiId, properties }) => {
    if (!properties.Body) throw new Error(`${logicalId}: the local host supports only HTTP APIs with an OpenAPI Body`);
    const { paths = {}, components = {} } = properties.Body as {
      paths?: Record<string, Fields>;
      components?: Record<string, Record<string, Fields>>;
    };
    const schemes = Object.entries(components.securitySchemes ?? {}).map(([name, scheme]) => [
      name,
      scheme['x-amazon-apigateway-authorizer'] as Fields,
    ]);
    const integrations = components['x-amazon-apigateway-integrations'] ?? {};
    return { logicalId, apiId, paths, integrations, authorizers: Object.fromEntries(schemes) };
  });
}

/** The routes of an API. What the local host would run differently from AWS is refused by name. */
export function httpRoutes(api: ApiDefinition): HttpRoute[] {
  return Object.entries(api.paths).flatMap(([path, { parameters: _names, ...operations }]) =>
    Object.entries(operations).map(([method, operation]) => parseRoute(api, method, path, operation as Fields)),
  );
}

const METHODS = ['get', 'post', 'put', 'delete', 'patch', 'head', 'options'];

function parseRoute(api: ApiDefinition, method: string, path: string, operation: Fields): HttpRoute {
  const routeKey = `${method.toUpperCase()} ${path}`;
  if (!METHODS.includes(method) || !path.startsWith('/') || path.includes('+}')) {
    throw new Error(`${api.logicalId}: the local host does not support the route key ${routeKey}`);
  }
  const integration = integrationOf(api, operation);
  if (integration?.type !== 'aws_proxy' || integration.payloadFormatVersion !== '2.0') {
    throw new Error(`${routeKey}: the local host supports only aws_proxy integrations with payload format 2.0`);
  }
  const [required = {}, ...alternatives] = (operation.security ?? []) as Fields[];
  const [authorizerId, ...others] = Object.keys(required);
  if (alternatives.length > 0 || others.length > 0) {
    throw new Error(`${routeKey}: an HTTP API has at most one authorizer for each route`);
  }
  return {
    apiId: api.apiId,
    routeKey,
    method: method.toUpperCase(),
    segments: path.split('/').slice(1),
    functionArn: functionArnOf(String(integration.uri)),
    roleArn: optionalText(integration.credentials),
    timeoutMs: Number(integration.timeoutInMillis ?? LONGEST_INTEGRATION_MS),
    authorizerId,
  };
}

const INTEGRATIONS = '#/components/x-amazon-apigateway-integrations/';

function integrationOf(api: ApiDefinition, operation: Fields): Fields | undefined {
  const integration = operation['x-amazon-apigateway-integration'] as Fields | undefined;
  const { $ref } = integration ?? {};
  return typeof $ref === 'string' ? api.integrations[$ref.replace(INTEGRATIONS, '')] : integration;
}

export const optionalText = (value: unknown) => (value === undefined ? undefined : String(value));

/** The ARN of a function in the URI of an integration or authorizer, where API Gateway's invocation path surrounds it. */
export function functionArnOf(uri: string): string {
  return /\/functions\/(.+)\/invocations$/.exec(uri)?.[1] ?? uri;
}

/** The route that API Gateway chooses: of those with this method, the one with the most specific path. */
export function matchRoute(routes: HttpRoute[], method: string, path: string): RouteMatch | undefined {
  const actual = path.split('/').slice(1).map(decodeSegment);
  let best: (RouteMatch & { rank: string }) | undefined;
  for (const route of routes) {
    if (route.method !== method || route.segments.length !== actual.length) continue;
    const matched = matchPath(route.segments, actual);
    if (matched && (best === undefined || matched.rank > best.rank)) best = { route, ...matched };
  }
  return best;
}

/** The rank has one digit per segment: 1 for a literal, 0 for a parameter. The higher rank is more specific, from left to right. */
function matchPath(
  segments: string[],
  actual: string[],
): { rank: string; pathParameters: Record<string, string> } | undefined {
  const pathParameters: Record<string, string> = {};
  let rank = '';
  for (const [index, segment] of segments.entries()) {
    const value = actual[index] ?? '';
    const [, parameter] = /^\{(.+)\}$/.exec(segment) ?? [];
    if (parameter === undefined ? value !== segment : value === '') return undefined;
    if (parameter !== undefined) pathParameters[parameter] = value;
    rank += parameter === undefined ? '1' : '0';
  }
  return { rank, pathParameters };
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

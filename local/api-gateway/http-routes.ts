import type { ResolvedResource, ResolvedStack } from '../template/template.ts';

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

/** The routes of the template's HTTP APIs. What the local host would run differently from AWS is refused by name. */
export function httpRoutes(stack: ResolvedStack): HttpRoute[] {
  const apis = stack.ofType('AWS::ApiGatewayV2::Api').filter(({ properties }) => properties.ProtocolType === 'HTTP');
  const integrations = new Map(stack.ofType('AWS::ApiGatewayV2::Integration').map((each) => [each.ref, each]));
  return stack
    .ofType('AWS::ApiGatewayV2::Route')
    .filter(({ properties }) => apis.some((api) => api.ref === properties.ApiId))
    .map((route) => {
      const target = String(route.properties.Target).replace('integrations/', '');
      return parseRoute(route, integrations.get(target)?.properties ?? {});
    });
}

function parseRoute({ logicalId, properties }: ResolvedResource, integration: Record<string, unknown>): HttpRoute {
  if (integration.IntegrationType !== 'AWS_PROXY' || integration.PayloadFormatVersion !== '2.0') {
    throw new Error(`${logicalId}: the local host supports only AWS_PROXY integrations with payload format 2.0`);
  }
  const authorization = String(properties.AuthorizationType ?? 'NONE');
  if (!['NONE', 'CUSTOM'].includes(authorization)) {
    throw new Error(`${logicalId}: the local host does not support ${authorization} authorization`);
  }
  const routeKey = String(properties.RouteKey);
  const [, method = '', path = ''] = /^([A-Z]+) (\/\S*)$/.exec(routeKey) ?? [];
  if (method === '' || method === 'ANY' || path.includes('+}')) {
    throw new Error(`${logicalId}: the local host does not support the route key ${routeKey}`);
  }
  return {
    apiId: String(properties.ApiId),
    routeKey,
    method,
    segments: path.split('/').slice(1),
    functionArn: String(integration.IntegrationUri),
    roleArn: optionalText(integration.CredentialsArn),
    timeoutMs: Number(integration.TimeoutInMillis ?? LONGEST_INTEGRATION_MS),
    authorizerId: authorization === 'CUSTOM' ? String(properties.AuthorizerId) : undefined,
  };
}

export const optionalText = (value: unknown) => (value === undefined ? undefined : String(value));

/** The ARN of a function in an AuthorizerUri, where API Gateway's invocation path surrounds it. */
export function functionArnOf(uri: string): string {
  return /\/functions\/(.+)\/invocations$/.exec(uri)?.[1] ?? uri;
}

/** The route that API Gateway chooses: of those with this method, the one with the most specific path. */
export function matchRoute(routes: HttpRoute[], method: string, path: string): RouteMatch | undefined {
  let best: (RouteMatch & { rank: string }) | undefined;
  for (const route of routes) {
    if (route.method !== method) continue;
    const matched = matchPath(route.segments, path);
    if (matched && (best === undefined || matched.rank > best.rank)) best = { route, ...matched };
  }
  return best;
}

/** The rank has one digit per segment: 1 for a literal, 0 for a parameter. The higher rank is more specific, from left to right. */
function matchPath(
  segments: string[],
  path: string,
): { rank: string; pathParameters: Record<string, string> } | undefined {
  const actual = path.split('/').slice(1);
  if (actual.length !== segments.length) return undefined;
  const pathParameters: Record<string, string> = {};
  let rank = '';
  for (const [index, segment] of segments.entries()) {
    const value = decodeSegment(actual[index] ?? '');
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

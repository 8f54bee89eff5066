import type { ResolvedResource, ResolvedStack } from '../template/template.ts';

export interface HttpRoute {
  apiId: string;
  /** As in the template: `GET /runs/{id}`, `ANY /{proxy+}` or `$default`. */
  routeKey: string;
  method: string;
  segments: string[];
  functionArn: string;
  timeoutMs: number;
  authorizerId: string | undefined;
}

export interface RouteMatch {
  route: HttpRoute;
  pathParameters: Record<string, string>;
}

/** The most an HTTP API waits for an integration. */
const LONGEST_INTEGRATION_MS = 30_000;

/** The routes of the template's HTTP APIs; whatever would behave differently in AWS is refused by name. */
export function httpRoutes(stack: ResolvedStack, apiLogicalIds?: string[]): HttpRoute[] {
  const apis = stack
    .ofType('AWS::ApiGatewayV2::Api')
    .filter(({ properties }) => properties.ProtocolType === 'HTTP')
    .filter(({ logicalId }) => apiLogicalIds === undefined || apiLogicalIds.includes(logicalId));
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
    throw new Error(`${logicalId}: the local host offers only AWS_PROXY integrations with payload format 2.0`);
  }
  const authorization = String(properties.AuthorizationType ?? 'NONE');
  if (!['NONE', 'CUSTOM'].includes(authorization)) {
    throw new Error(`${logicalId}: the local host does not offer ${authorization} authorization`);
  }
  const routeKey = String(properties.RouteKey);
  const [method = '', path = ''] = routeKey === '$default' ? ['ANY', ''] : routeKey.split(' ');
  return {
    apiId: String(properties.ApiId),
    routeKey,
    method,
    segments: path.split('/').slice(1),
    functionArn: functionArnOf(String(integration.IntegrationUri)),
    timeoutMs: Number(integration.TimeoutInMillis ?? LONGEST_INTEGRATION_MS),
    authorizerId: authorization === 'CUSTOM' ? String(properties.AuthorizerId) : undefined,
  };
}

/** An integration names a function by its ARN, bare or inside API Gateway's own invocation path. */
export function functionArnOf(uri: string): string {
  return /\/functions\/(.+)\/invocations$/.exec(uri)?.[1] ?? uri;
}

/** The route API Gateway would choose: the most specific path that has the method, `$default` last. */
export function matchRoute(routes: HttpRoute[], method: string, path: string): RouteMatch | undefined {
  let best: (RouteMatch & { rank: string }) | undefined;
  for (const route of routes) {
    if (route.method !== 'ANY' && route.method !== method) continue;
    const matched = route.routeKey === '$default' ? { rank: '', pathParameters: {} } : matchPath(route.segments, path);
    if (!matched) continue;
    const rank = matched.rank + (route.method === 'ANY' ? 'a' : 'b');
    if (best === undefined || rank > best.rank) best = { route, pathParameters: matched.pathParameters, rank };
  }
  return best;
}

/** The rank has a letter per segment, so that comparing texts compares from left to right: literal (e), {one} (d), {rest+} (c). */
function matchPath(
  segments: string[],
  path: string,
): { rank: string; pathParameters: Record<string, string> } | undefined {
  const actual = path.split('/').slice(1);
  const pathParameters: Record<string, string> = {};
  let rank = '';
  for (const [index, segment] of segments.entries()) {
    const parameter = /^\{(.+?)(\+?)\}$/.exec(segment);
    const [, name = '', greedy] = parameter ?? [];
    const value = greedy ? actual.slice(index).join('/') : actual[index];
    if (value === undefined || (parameter && value === '')) return undefined;
    if (!parameter && decodeSegment(value) !== segment) return undefined;
    if (parameter) pathParameters[name] = decodeSegment(value);
    rank += parameter ? (greedy ? 'c' : 'd') : 'e';
    if (greedy) return { rank, pathParameters };
  }
  return actual.length === segments.length ? { rank, pathParameters } : undefined;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

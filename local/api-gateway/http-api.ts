import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ACCOUNT, type InvokeFunction, REGION } from '../aws/aws.ts';
import type { LocalCloudWatch } from '../cloud/cloudwatch/cloudwatch.ts';
import type { HostClock } from '../host/clock.ts';
import type { Iam } from '../iam/iam.ts';
import type { ResolvedStack } from '../template/template.ts';
import { HttpAuthorizer } from './http-authorizer.ts';
import { type HttpReply, type HttpRequest, httpReply, httpRequest, messageReply, proxyEvent } from './http-events.ts';
import { apiDefinitions, type HttpRoute, httpRoutes, matchRoute, type RouteMatch } from './http-routes.ts';

interface HttpApiOptions {
  stack: ResolvedStack;
  iam: Iam;
  invoke: InvokeFunction;
  clock: Pick<HostClock, 'now'>;
  cloudWatch?: Pick<LocalCloudWatch, 'put'>;
  log?(line: string): void;
}

/** The limit of HTTP APIs. */
const LARGEST_BODY_BYTES = 10 * 1024 * 1024;

/** Runs the HTTP APIs of the template as API Gateway does. */
export class HttpApi {
  readonly #options: HttpApiOptions;
  readonly #routes: HttpRoute[];
  readonly #authorizers: Map<string, HttpAuthorizer>;
  readonly #apiIds: string[];

  constructor(options: HttpApiOptions) {
    this.#options = options;
    const apis = apiDefinitions(options.stack);
    this.#apiIds = apis.map(({ apiId }) => apiId);
    this.#routes = apis.flatMap(httpRoutes);
    this.#authorizers = new Map(
      apis.flatMap(({ authorizers }) =>
        Object.entries(authorizers).map(([id, defined]) => [id, new HttpAuthorizer(id, defined, options.invoke)]),
      ),
    );
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = randomUUID();
    const startedMs = performance.now();
    const reply = await this.#reply(request, requestId);
    this.#measure(reply.status, performance.now() - startedMs);
    response.writeHead(reply.status, {
      ...reply.headers,
      // Agents correct their clock by it, and the clock of the host can be moved.
      date: new Date(this.#options.clock.now()).toUTCString(),
      'content-length': String(Buffer.byteLength(reply.body)),
      'apigw-requestid': requestId,
    });
    response.end(reply.body);
  }

  #measure(status: number, latencyMs: number): void {
    const is = (hundreds: number) => (Math.floor(status / 100) === hundreds ? 1 : 0);
    const values = { Count: 1, '4xx': is(4), '5xx': is(5), Latency: latencyMs };
    for (const ApiId of this.#apiIds) this.#options.cloudWatch?.put('AWS/ApiGateway', { ApiId }, values);
  }

  async #reply(request: IncomingMessage, requestId: string): Promise<HttpReply> {
    const path = (request.url ?? '/').split('?')[0] ?? '/';
    const body = await readBody(request);
    if (!body) return messageReply(413, 'Request Entity Too Large');
    const match = matchRoute(this.#routes, request.method ?? 'GET', path);
    if (!match) return messageReply(404, 'Not Found');
    const received = httpRequest(request, body, { requestId, timeEpochMs: this.#options.clock.now() });
    try {
      return await this.#authorizeAndInvoke(received, match);
    } catch (error) {
      this.#options.log?.(`${match.route.routeKey}: ${error instanceof Error ? error.message : String(error)}`);
      return messageReply(500, 'Internal Server Error');
    }
  }

  async #authorizeAndInvoke(request: HttpRequest, match: RouteMatch): Promise<HttpReply> {
    const { route } = match;
    const routeArn = executeApiArn(route);
    const authorizer = route.authorizerId === undefined ? undefined : this.#authorizer(route.authorizerId);
    let context: Record<string, unknown> | undefined;
    if (authorizer) {
      this.#requirePermission(authorizer, `${executeApiRoot(route)}/authorizers/${authorizer.id}`);
      const authorization = await authorizer.authorize(request, match, routeArn);
      if (authorization.kind === 'unauthorized') return messageReply(401, 'Unauthorized');
      if (authorization.kind === 'forbidden') return messageReply(403, 'Forbidden');
      context = authorization.context;
    }
    this.#requirePermission(route, routeArn);
    const result = await withinOrUndefined(
      route.timeoutMs,
      this.#options.invoke(route.functionArn, proxyEvent(request, match, context)),
    );
    return result ? httpReply(result.value) : messageReply(503, 'Service Unavailable');
  }

  #authorizer(id: string): HttpAuthorizer {
    const authorizer = this.#authorizers.get(id);
    if (!authorizer) throw new Error(`the template has no authorizer ${id}`);
    return authorizer;
  }

  #requirePermission(invoked: Pick<HttpRoute, 'functionArn' | 'roleArn'>, sourceArn: string): void {
    const decision = this.#options.iam.mayInvoke(invoked.functionArn, {
      principal: 'apigateway.amazonaws.com',
      sourceArn,
      roleArn: invoked.roleArn,
    });
    if (!decision.allowed) throw new Error(decision.message);
  }
}

function executeApiRoot({ apiId }: HttpRoute): string {
  return `arn:aws:execute-api:${REGION}:${ACCOUNT}:${apiId}`;
}

/** `…/$default/GET/runs/{id}`: stage, method and the path of the route. */
function executeApiArn(route: HttpRoute): string {
  return `${executeApiRoot(route)}/$default/${route.method}/${route.segments.join('/')}`;
}

/** Undefined if the body is too large. The whole body is read, so that the client receives the response. */
function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= LARGEST_BODY_BYTES) chunks.push(chunk);
    });
    request.once('end', () => resolve(bytes > LARGEST_BODY_BYTES ? undefined : Buffer.concat(chunks)));
    request.once('error', reject);
    request.once('close', () => reject(new Error('the connection closed before the end of the request')));
  });
}

/** Undefined after the limit. The function continues to run, as in AWS. */
async function withinOrUndefined<T>(limitMs: number, work: Promise<T>): Promise<{ value: T } | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), limitMs);
  });
  try {
    return await Promise.race([work.then((value) => ({ value })), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

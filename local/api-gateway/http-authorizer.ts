import type { InvokeFunction } from '../aws/aws.ts';
import type { HostClock } from '../host/clock.ts';
import { evaluateStatements, parseStatements } from '../iam/iam.ts';
import type { ResolvedResource } from '../template/template.ts';
import { authorizerEvent, type WorldRequest } from './http-events.ts';
import { functionArnOf, type RouteMatch } from './http-routes.ts';

export type Authorization =
  | { kind: 'allowed'; context: Record<string, unknown> }
  | { kind: 'unauthorized' }
  | { kind: 'forbidden' };

/** What the authorizer's function answered, in either of the two response formats. */
type Answer = { context: Record<string, unknown>; allows(routeArn: string): boolean };

/** Cached answers are few (one per API key in use); past this, the oldest go. */
const MOST_CACHED_ANSWERS = 1_000;

/** A Lambda REQUEST authorizer of an HTTP API. */
export class HttpAuthorizer {
  readonly id: string;
  readonly functionArn: string;
  readonly #identitySources: string[];
  readonly #ttlMs: number;
  readonly #simpleResponses: boolean;
  readonly #logicalId: string;
  readonly #invoke: InvokeFunction;
  readonly #clock: Pick<HostClock, 'now'>;
  readonly #cache = new Map<string, { untilMs: number; answer: Answer }>();

  constructor(resource: ResolvedResource, invoke: InvokeFunction, clock: Pick<HostClock, 'now'>) {
    const { properties, logicalId, ref } = resource;
    if (properties.AuthorizerType !== 'REQUEST' || properties.AuthorizerPayloadFormatVersion !== '2.0') {
      throw new Error(`${logicalId}: the local host offers only REQUEST authorizers with payload format 2.0`);
    }
    this.id = ref;
    this.functionArn = functionArnOf(String(properties.AuthorizerUri));
    this.#logicalId = logicalId;
    this.#identitySources = [properties.IdentitySource ?? []].flat().map(String);
    this.#ttlMs = Number(properties.AuthorizerResultTtlInSeconds ?? 0) * 1000;
    this.#simpleResponses = properties.EnableSimpleResponses === true;
    this.#invoke = invoke;
    this.#clock = clock;
  }

  async authorize(request: WorldRequest, match: RouteMatch, routeArn: string): Promise<Authorization> {
    const identity = this.#identitySources.map((source) => identityValue(source, request, match));
    // API Gateway does not even ask the function about a request without credentials.
    if (identity.some((value) => !value)) return { kind: 'unauthorized' };
    const answer = await this.#answer(identity.map(String), request, match, routeArn);
    return answer.allows(routeArn) ? { kind: 'allowed', context: answer.context } : { kind: 'forbidden' };
  }

  async #answer(identity: string[], request: WorldRequest, match: RouteMatch, routeArn: string): Promise<Answer> {
    const cacheKey = JSON.stringify(identity);
    const cached = this.#cache.get(cacheKey);
    if (cached && cached.untilMs > this.#clock.now()) return cached.answer;
    const event = authorizerEvent(request, match, identity, routeArn);
    const answer = this.#read(await this.#invoke(this.functionArn, event));
    if (this.#ttlMs > 0 && identity.length > 0) this.#remember(cacheKey, answer);
    return answer;
  }

  #remember(cacheKey: string, answer: Answer): void {
    this.#cache.delete(cacheKey);
    this.#cache.set(cacheKey, { untilMs: this.#clock.now() + this.#ttlMs, answer });
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > MOST_CACHED_ANSWERS && oldest !== undefined) this.#cache.delete(oldest);
  }

  #read(result: unknown): Answer {
    const { isAuthorized, policyDocument, context } = (result ?? {}) as Record<string, unknown>;
    const shared = (context ?? {}) as Record<string, unknown>;
    if (this.#simpleResponses) {
      if (typeof isAuthorized !== 'boolean') throw new Error(`${this.#logicalId} answered without isAuthorized`);
      return { context: shared, allows: () => isAuthorized };
    }
    if (policyDocument === undefined) throw new Error(`${this.#logicalId} answered without a policyDocument`);
    const statements = parseStatements(policyDocument, this.#logicalId);
    return {
      context: shared,
      allows: (routeArn) => evaluateStatements(statements, 'execute-api:Invoke', routeArn, {}).allowed,
    };
  }
}

function identityValue(source: string, request: WorldRequest, { route }: RouteMatch): string | undefined {
  const [, kind, name = ''] = /^\$(request\.header|request\.querystring|context)\.(.+)$/.exec(source) ?? [];
  if (kind === 'request.header') return request.headers[name.toLowerCase()];
  if (kind === 'request.querystring') return new URLSearchParams(request.rawQueryString).get(name) ?? undefined;
  if (kind === 'context' && name === 'routeKey') return route.routeKey;
  throw new Error(`the local host does not know the identity source ${source}`);
}

import type { InvokeFunction } from '../aws/aws.ts';
import { authorizerEvent, type HttpRequest } from './http-events.ts';
import { functionArnOf, optionalText, type RouteMatch } from './http-routes.ts';

export type Authorization =
  | { kind: 'allowed'; context: Record<string, unknown> }
  | { kind: 'unauthorized' }
  | { kind: 'forbidden' };

const SUPPORTED: Record<string, unknown> = {
  type: 'request',
  authorizerPayloadFormatVersion: '2.0',
  authorizerResultTtlInSeconds: 0,
  enableSimpleResponses: true,
};

/** A Lambda authorizer of an HTTP API: simple responses, no cache. */
export class HttpAuthorizer {
  readonly id: string;
  readonly functionArn: string;
  readonly roleArn: string | undefined;
  /** Names of headers. */
  readonly #identitySources: string[];
  readonly #invoke: InvokeFunction;

  /** The id is the name of its security scheme; `defined` is what API Gateway reads of it. */
  constructor(id: string, defined: Record<string, unknown>, invoke: InvokeFunction) {
    for (const [name, value] of Object.entries(SUPPORTED)) {
      if (defined[name] !== value) {
        throw new Error(`${id}: the local host supports only authorizers with ${name} ${value}`);
      }
    }
    this.id = id;
    this.functionArn = functionArnOf(String(defined.authorizerUri));
    this.roleArn = optionalText(defined.authorizerCredentials);
    const sources = optionalText(defined.identitySource)?.split(',') ?? [];
    this.#identitySources = sources.map((source) => headerName(source.trim()));
    this.#invoke = invoke;
  }

  async authorize(request: HttpRequest, match: RouteMatch, routeArn: string): Promise<Authorization> {
    const identity = this.#identitySources.flatMap((name) => request.headers[name] || []);
    // API Gateway does not invoke the function for a request without credentials.
    if (identity.length < this.#identitySources.length) return { kind: 'unauthorized' };
    const result = await this.#invoke(this.functionArn, authorizerEvent(request, match, identity, routeArn));
    const { isAuthorized, context } = (result ?? {}) as Record<string, unknown>;
    if (typeof isAuthorized !== 'boolean') throw new Error(`${this.id} returned no isAuthorized`);
    return isAuthorized
      ? { kind: 'allowed', context: (context ?? {}) as Record<string, unknown> }
      : { kind: 'forbidden' };
  }
}

function headerName(source: string): string {
  const [, name] = /^\$request\.header\.(.+)$/.exec(source) ?? [];
  if (!name) throw new Error(`the local host does not support the identity source ${source}`);
  return name.toLowerCase();
}

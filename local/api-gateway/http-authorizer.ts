import type { InvokeFunction } from '../aws/aws.ts';
import type { ResolvedResource } from '../template/template.ts';
import { authorizerEvent, type HttpRequest } from './http-events.ts';
import { functionArnOf, optionalText, type RouteMatch } from './http-routes.ts';

export type Authorization =
  | { kind: 'allowed'; context: Record<string, unknown> }
  | { kind: 'unauthorized' }
  | { kind: 'forbidden' };

const SUPPORTED: Record<string, unknown> = {
  AuthorizerType: 'REQUEST',
  AuthorizerPayloadFormatVersion: '2.0',
  AuthorizerResultTtlInSeconds: 0,
  EnableSimpleResponses: true,
};

/** A Lambda authorizer of an HTTP API: simple responses, no cache. */
export class HttpAuthorizer {
  readonly id: string;
  readonly functionArn: string;
  readonly roleArn: string | undefined;
  /** Names of headers. */
  readonly #identitySources: string[];
  readonly #logicalId: string;
  readonly #invoke: InvokeFunction;

  constructor({ properties, logicalId, ref }: ResolvedResource, invoke: InvokeFunction) {
    for (const [name, value] of Object.entries(SUPPORTED)) {
      if (properties[name] !== value) {
        throw new Error(`${logicalId}: the local host supports only authorizers with ${name} ${value}`);
      }
    }
    this.id = ref;
    this.functionArn = functionArnOf(String(properties.AuthorizerUri));
    this.roleArn = optionalText(properties.AuthorizerCredentialsArn);
    this.#logicalId = logicalId;
    this.#identitySources = [properties.IdentitySource ?? []].flat().map((source) => headerName(String(source)));
    this.#invoke = invoke;
  }

  async authorize(request: HttpRequest, match: RouteMatch, routeArn: string): Promise<Authorization> {
    const identity = this.#identitySources.flatMap((name) => request.headers[name] || []);
    // API Gateway does not invoke the function for a request without credentials.
    if (identity.length < this.#identitySources.length) return { kind: 'unauthorized' };
    const result = await this.#invoke(this.functionArn, authorizerEvent(request, match, identity, routeArn));
    const { isAuthorized, context } = (result ?? {}) as Record<string, unknown>;
    if (typeof isAuthorized !== 'boolean') throw new Error(`${this.#logicalId} returned no isAuthorized`);
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

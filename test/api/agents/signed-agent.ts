import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { formatNonce, keyThumbprint, signRequest } from '../../../lambdas/agents/request-signature.ts';
import { type RouteDefinition, routeKey } from '../../../lambdas/api/contract/route.ts';
import type { HttpEvent } from '../../../lambdas/entry/http.ts';
import type { Clock } from '../../../lambdas/entry/ports.ts';

export interface Sent {
  /** The path of another agent. */
  id?: string;
  keyId?: string;
  privateKey?: KeyObject;
  /** How far the clock of the agent is off. */
  skewMs?: number;
  nonce?: string;
}

/** An agent as the API sees it: signs its requests. */
export class SignedAgent {
  readonly #keys = generateKeyPairSync('ed25519');
  readonly #clock: Clock;
  agentId = '';
  bootId: string;
  counter = 0;

  constructor(clock: Clock, bootId = 'boot-0001') {
    this.#clock = clock;
    this.bootId = bootId;
  }

  get publicKey(): string {
    return this.#keys.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  }

  get privateKey(): KeyObject {
    return this.#keys.privateKey;
  }

  get thumbprint(): string {
    return keyThumbprint(this.#keys.publicKey);
  }

  /** The same identity in another process. */
  secondProcess(bootId: string): SignedAgent {
    const other = new SignedAgent(this.#clock, bootId);
    Object.defineProperty(other, 'privateKey', { value: this.privateKey });
    other.agentId = this.agentId;
    return other;
  }

  /** A signed request as API Gateway passes it on. */
  event(route: RouteDefinition, body: unknown, sent: Sent = {}): HttpEvent {
    const { id = this.agentId, keyId = this.agentId || this.thumbprint, privateKey = this.privateKey } = sent;
    const path = route.path.replace('{id}', id);
    const text = JSON.stringify(body);
    this.counter += 1;
    const nonce = sent.nonce ?? formatNonce(this.bootId, this.counter);
    const created = this.#clock.now() + (sent.skewMs ?? 0);
    const headers = signRequest({ method: route.method, path, body: text }, { keyId, nonce, created }, privateKey);
    return {
      routeKey: routeKey(route),
      rawPath: path,
      rawQueryString: '',
      headers: { 'content-type': 'application/json', ...headers },
      ...(route.path.includes('{id}') && { pathParameters: { id } }),
      body: text,
      isBase64Encoded: false,
      requestContext: { http: { method: route.method, path }, requestId: 'request-1' },
    } as unknown as HttpEvent;
  }
}

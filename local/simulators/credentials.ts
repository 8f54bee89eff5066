import type { SimCall } from './exchange.ts';
import type { SimulatorStore } from './store.ts';

interface IssuedToken {
  expiresAtMs: number;
}

/** All fixed credentials of the local host start with this. Every other token must have been issued by the system. */
export const LOCAL_CREDENTIAL_PREFIX = 'local-';

/** The tokens that a system has issued. An expired token fails, as in production. */
export class IssuedTokens {
  readonly #tokens;
  readonly #now: () => number;

  constructor(store: SimulatorStore, name: string, now: () => number) {
    this.#tokens = store.collection<IssuedToken>(`${name}.token`);
    this.#now = now;
  }

  issue(token: string, lifetimeSeconds: number): string {
    this.#tokens.put(token, { expiresAtMs: this.#now() + lifetimeSeconds * 1000 });
    return token;
  }

  isLive(token: string): boolean {
    const issued = this.#tokens.get(token);
    return issued !== undefined && this.#now() < issued.expiresAtMs;
  }

  /** True for an issued token that has not expired, and for a fixed one. */
  accepts(token: string, fixedPrefixes: readonly string[] = []): boolean {
    return [LOCAL_CREDENTIAL_PREFIX, ...fixedPrefixes].some((prefix) => token.startsWith(prefix)) || this.isLive(token);
  }
}

/** The token of an `Authorization: <scheme> <token>` header, or an empty string. */
export function credentialOf(header: string | undefined, ...schemes: string[]): string {
  const [scheme = '', credential = ''] = (header ?? '').split(' ');
  return schemes.some((accepted) => accepted.toLowerCase() === scheme.toLowerCase()) ? credential : '';
}

/** The credentials of plans. Every system allows reads with them and refuses writes. */
export const READ_ONLY_CREDENTIAL_PREFIX = `${LOCAL_CREDENTIAL_PREFIX}read-only-`;

const READING_METHODS = ['GET', 'HEAD'];

/** True for a call that could write, with credentials that allow only reads. */
export function isForbiddenWrite(call: Pick<SimCall, 'method' | 'header'>): boolean {
  if (READING_METHODS.includes(call.method)) return false;
  const header = call.header('authorization');
  const basic = Buffer.from(credentialOf(header, 'basic'), 'base64').toString();
  const secrets = [credentialOf(header, 'bearer', 'token'), basic.slice(basic.indexOf(':') + 1)];
  return secrets.some((secret) => secret.startsWith(READ_ONLY_CREDENTIAL_PREFIX));
}

import type { SimCall } from './exchange.ts';
import type { SimulatorStore } from './store.ts';

interface IssuedToken {
  expiresAtMs: number;
}

/** Fixed credentials of the local host begin with this in every system; anything else must have been issued here. */
export const LOCAL_CREDENTIAL_PREFIX = 'local-';

/** Tokens a system handed out, with their end: an expired one must fail as it does in production. */
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

  /** Issued and not expired, or one of the fixed kinds. */
  accepts(token: string, fixedPrefixes: readonly string[] = []): boolean {
    return [LOCAL_CREDENTIAL_PREFIX, ...fixedPrefixes].some((prefix) => token.startsWith(prefix)) || this.isLive(token);
  }
}

/** The token of an `Authorization: <scheme> <token>` header, or an empty string. */
export function credentialOf(header: string | undefined, ...schemes: string[]): string {
  const [scheme = '', credential = ''] = (header ?? '').split(' ');
  return schemes.some((accepted) => accepted.toLowerCase() === scheme.toLowerCase()) ? credential : '';
}

/** What plans look at targets with: every system lets whoever holds one read, and nothing else. */
export const READ_ONLY_CREDENTIAL_PREFIX = `${LOCAL_CREDENTIAL_PREFIX}read-only-`;

const READING_METHODS = ['GET', 'HEAD'];

/** A call that could write, by someone who may only read. */
export function isForbiddenWrite(call: Pick<SimCall, 'method' | 'header'>): boolean {
  if (READING_METHODS.includes(call.method)) return false;
  const header = call.header('authorization');
  const basic = Buffer.from(credentialOf(header, 'basic'), 'base64').toString();
  const secrets = [credentialOf(header, 'bearer', 'token'), basic.slice(basic.indexOf(':') + 1)];
  return secrets.some((secret) => secret.startsWith(READ_ONLY_CREDENTIAL_PREFIX));
}

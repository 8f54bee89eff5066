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

import { CountersignError } from '../run/errors.ts';
import type { Access } from './connector.ts';
import { TargetRefused, UNAUTHORIZED } from './target-errors.ts';

/** A token that expires sooner than this is not used: the call itself takes time. */
const SPARE_MS = 60_000;

export interface Granted {
  token: string;
  expiresAtMs: number;
}

type Grant = (nowMs: number) => Promise<Granted>;

/** Caches the short-lived token of one connection in a warm function until it expires. */
export class TokenCache {
  readonly #now: () => number;
  #cached: Granted | undefined;
  #granting: Promise<Granted> | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Makes a call with the token. If the target rejects a cached token, the token is dropped and the call may be retried
   * with a new one. If it rejects a new token, a person has to check the credential.
   */
  async call<T>(grant: Grant, make: (token: string) => Promise<T>): Promise<T> {
    const cached = this.#cached && this.#now() < this.#cached.expiresAtMs - SPARE_MS ? this.#cached : undefined;
    const used = cached ?? (await this.#granted(grant));
    try {
      return await make(used.token);
    } catch (error) {
      if (!(error instanceof TargetRefused) || error.status !== UNAUTHORIZED) throw error;
      if (this.#cached?.token === used.token) this.#cached = undefined;
      throw cached ? new TargetRefused(error.message, { retryable: true, status: UNAUTHORIZED, cause: error }) : error;
    }
  }

  /** Concurrent calls share one grant. */
  #granted(grant: Grant): Promise<Granted> {
    this.#granting ??= grant(this.#now())
      .then((granted) => {
        this.#cached = granted;
        return granted;
      })
      .finally(() => {
        this.#granting = undefined;
      });
    return this.#granting;
  }
}

export function tokenCacheOf({ token }: Access): TokenCache {
  if (token) return token;
  throw new CountersignError('CONNECTION_MISSING', 'this connection cannot cache a token; use a permanent credential');
}

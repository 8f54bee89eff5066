import { CountersignError } from '../run/errors.ts';
import type { Access } from './connector.ts';
import { TargetRefused, UNAUTHORIZED } from './exchange.ts';

/** A token this close to its end is not used any more: the call it goes with may take its time. */
const SPARE_MS = 60_000;

export interface Granted {
  token: string;
  expiresAtMs: number;
}

type Grant = (nowMs: number) => Promise<Granted>;

/** The short-lived token that one connection's credential was exchanged for, kept in a warm function while it lives. */
export class TokenCache {
  readonly #now: () => number;
  #kept: Granted | undefined;
  #granting: Promise<Granted> | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Makes a call with the token. If the target no longer takes a kept one, it is dropped and the refusal may be retried,
   * with a new one; a token granted for this very call and refused is a matter for a person.
   */
  async call<T>(grant: Grant, make: (token: string) => Promise<T>): Promise<T> {
    const kept = this.#kept && this.#now() < this.#kept.expiresAtMs - SPARE_MS ? this.#kept : undefined;
    const used = kept ?? (await this.#granted(grant));
    try {
      return await make(used.token);
    } catch (error) {
      if (!(error instanceof TargetRefused) || error.status !== UNAUTHORIZED) throw error;
      if (this.#kept?.token === used.token) this.#kept = undefined;
      throw kept ? new TargetRefused(error.message, { retryable: true, status: UNAUTHORIZED, cause: error }) : error;
    }
  }

  /** Calls side by side share one grant. */
  #granted(grant: Grant): Promise<Granted> {
    this.#granting ??= grant(this.#now())
      .then((granted) => {
        this.#kept = granted;
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
  throw new CountersignError('CONNECTION_MISSING', 'this connection keeps no token; give it a lasting credential');
}

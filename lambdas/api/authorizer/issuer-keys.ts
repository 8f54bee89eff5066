import * as z from 'zod';
import { Unauthenticated } from './unauthenticated.ts';

/** A key that was removed by its issuer is accepted for at most this time. */
const KEYS_CACHED_MS = 10 * 60_000;
/** Tokens with invented key ids must not make us flood the issuer. */
const REFRESH_AFTER_MS = 30_000;
/** An issuer that does not respond is called again after this time. */
const FAILURE_CACHED_MS = 10_000;
/** Issuers have a few keys. More would only cost memory. */
const KEYS_MAX = 100;

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.string().max(2_000) });

/** The fields that we use of a public key (RFC 7517). */
const PublicKey = z.object({
  kty: z.enum(['RSA', 'EC', 'OKP']),
  kid: z.string().max(200),
  use: z.literal('sig').optional(),
  alg: z.string().optional(),
  crv: z.string().optional(),
  n: z.string().optional(),
  e: z.string().optional(),
  x: z.string().optional(),
  y: z.string().optional(),
});
export type PublicKey = z.infer<typeof PublicKey>;
const KeySet = z.object({ keys: z.array(z.unknown()).max(KEYS_MAX) });

/** Reads a JSON document of at most some kilobytes, or throws. */
export type FetchJson = (url: string) => Promise<unknown>;

interface Fetched {
  at: number;
  keys?: Map<string, PublicKey>;
}

/** The public keys of issuers, which a warm function caches. */
export class IssuerKeys {
  readonly #fetch: FetchJson;
  readonly #now: () => number;
  readonly #onFailure: (issuer: string, error: unknown) => void;
  readonly #issuers = new Map<string, Promise<Fetched>>();

  constructor(fetch: FetchJson, now: () => number, onFailure: (issuer: string, error: unknown) => void) {
    this.#fetch = fetch;
    this.#now = now;
    this.#onFailure = onFailure;
  }

  async find(issuer: string, keyId: string): Promise<PublicKey> {
    const cached = await this.#issuers.get(issuer);
    const fetched = cached && !this.#isDue(cached, keyId) ? cached : await this.#refresh(issuer);
    if (!fetched.keys) {
      throw new Unauthenticated(
        `the keys of the issuer ${issuer} could not be read, so its tokens cannot be verified; try again in a minute, or use an API key`,
      );
    }
    const key = fetched.keys.get(keyId);
    if (!key) throw new Unauthenticated(`the issuer ${issuer} has no key with the id of this token; sign in again`);
    return key;
  }

  #isDue({ at, keys }: Fetched, keyId: string): boolean {
    const age = this.#now() - at;
    if (!keys) return age >= FAILURE_CACHED_MS;
    return age >= KEYS_CACHED_MS || (!keys.has(keyId) && age >= REFRESH_AFTER_MS);
  }

  #refresh(issuer: string): Promise<Fetched> {
    const at = this.#now();
    const refreshed = this.#read(issuer).then(
      (keys) => ({ at, keys }),
      (error: unknown) => {
        this.#onFailure(issuer, error);
        return { at };
      },
    );
    this.#issuers.set(issuer, refreshed);
    return refreshed;
  }

  async #read(issuer: string): Promise<Map<string, PublicKey>> {
    const discovery = Discovery.parse(
      await this.#fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`),
    );
    if (discovery.issuer !== issuer) throw new Error(`the discovery document is of ${discovery.issuer.slice(0, 200)}`);
    const { keys } = KeySet.parse(await this.#fetch(discovery.jwks_uri));
    // Keys for encryption, or of kinds that we do not use, are ignored.
    const usable = keys.flatMap((key) => PublicKey.safeParse(key).data ?? []);
    const ids = usable.map(({ kid }) => kid);
    if (new Set(ids).size < ids.length) throw new Error('two keys have the same id');
    return new Map(usable.map((key) => [key.kid, key]));
  }
}

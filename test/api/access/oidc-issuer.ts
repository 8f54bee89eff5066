import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

type Keys = Awaited<ReturnType<typeof generateKeyPair>>;

/** An OIDC issuer in memory: its documents, and the tokens that it signs. */
export class TestIssuer {
  readonly url: string;
  readonly #keys = new Map<string, { keys: Keys; alg: string }>();
  /** Requests so far. */
  readonly requests: string[] = [];
  /** Replaces the key set. */
  jwks?: () => unknown;
  /** Replaces the discovery document. */
  discovery?: () => unknown;

  constructor(url: string) {
    this.url = url;
  }

  async addKey(kid: string, alg = 'ES256'): Promise<this> {
    this.#keys.set(kid, { keys: await generateKeyPair(alg, { extractable: true }), alg });
    return this;
  }

  removeKey(kid: string): void {
    this.#keys.delete(kid);
  }

  readonly fetch = async (url: string): Promise<unknown> => {
    this.requests.push(url);
    const discovery = { issuer: this.url, jwks_uri: `${this.url}/keys` };
    if (url === `${this.url}/.well-known/openid-configuration`) return this.discovery ? this.discovery() : discovery;
    if (url !== `${this.url}/keys`) throw new Error(`nothing at ${url}`);
    return this.jwks ? this.jwks() : { keys: await this.publicKeys() };
  };

  publicKeys() {
    return Promise.all(
      [...this.#keys].map(async ([kid, { keys, alg }]) => ({ ...(await exportJWK(keys.publicKey)), kid, alg })),
    );
  }

  /** A token that is valid for five minutes; `claims` with the value undefined are left out. */
  async token(claims: JWTPayload = {}, header: { kid?: string; alg?: string; crit?: string[] } = {}): Promise<string> {
    const kid = header.kid ?? [...this.#keys.keys()][0] ?? '';
    const { keys, alg } = this.#keys.get(kid) ?? { alg: '' };
    if (!keys) throw new Error(`no key ${kid}`);
    const now = Math.floor(Date.now() / 1000);
    const usual = { iss: this.url, aud: 'countersign', sub: 'sub-1', iat: now, exp: now + 300 };
    const payload = JSON.parse(JSON.stringify({ ...usual, ...claims }));
    return new SignJWT(payload).setProtectedHeader({ alg, kid, ...header }).sign(keys.privateKey);
  }
}

export const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

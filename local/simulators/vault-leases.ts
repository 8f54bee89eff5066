import { LOCAL_CREDENTIAL_PREFIX } from './credentials.ts';
import { textOf } from './exchange.ts';
import type { Collection, SimulatorStore } from './store.ts';

interface Lease {
  id: string;
  expiresAtMs: number;
  ttlSeconds: number;
  renewable: boolean;
  token: string;
}

interface Token {
  accessor: string;
  expiresAtMs: number;
}

const TOKEN_SECONDS = 3_600;
const LEASE_SECONDS = 3_600;
/** A renewal extends a lease by at most this time, as with Vault's default max TTL. */
const LONGEST_SECONDS = 86_400;
/** Roles of the database engine that differ from the default. */
const ROLES: Record<string, Partial<Lease>> = {
  'database/creds/orders-maintenance': { ttlSeconds: 120 },
  'database/creds/one-hour': { renewable: false },
};

/** The tokens and leases of the simulated Vault. Both expire with the clock of the host. */
export class VaultLeases {
  readonly #store: SimulatorStore;
  readonly #now: () => number;
  readonly #leases: Collection<Lease>;
  readonly #tokens: Collection<Token>;

  constructor(store: SimulatorStore, now: () => number) {
    this.#store = store;
    this.#now = now;
    this.#leases = store.collection('vault.lease');
    this.#tokens = store.collection('vault.token');
  }

  /** The `auth` of a login. */
  newToken(): Record<string, unknown> {
    const token = `hvs.${this.#store.nextId('vault.token', 40)}`;
    const accessor = this.#store.nextId('vault.accessor', 24);
    this.#tokens.put(token, { accessor, expiresAtMs: this.#after(TOKEN_SECONDS) });
    return this.#auth(token, accessor, TOKEN_SECONDS);
  }

  /** A token of the local host that never expires, or an issued one that has not expired. */
  accepts(token: string): boolean {
    if (token.startsWith(LOCAL_CREDENTIAL_PREFIX)) return true;
    return this.#now() < (this.#tokens.get(token)?.expiresAtMs ?? 0);
  }

  describeToken(token: string): { accessor: string; ttl: number; renewable: boolean } {
    const issued = this.#tokens.get(token);
    if (!issued) return { accessor: '', ttl: 0, renewable: false };
    return { accessor: issued.accessor, ttl: Math.ceil((issued.expiresAtMs - this.#now()) / 1000), renewable: true };
  }

  /** The time counts from now on, so a renewal can shorten it. */
  renewToken(token: string, increment: unknown): Record<string, unknown> {
    const seconds = secondsOf(increment, TOKEN_SECONDS);
    const { accessor } = this.describeToken(token);
    this.#tokens.put(token, { accessor, expiresAtMs: this.#after(seconds) });
    return this.#auth(token, accessor, seconds);
  }

  revokeToken(token: string): void {
    this.#tokens.delete(token);
    for (const lease of this.#leases.list(token)) this.#leases.delete(lease.id);
  }

  newLease(role: string, secret: string, token: string): Lease {
    const id = `${role}/${secret.slice(0, 24)}`;
    const { ttlSeconds = LEASE_SECONDS, renewable = true } = ROLES[role] ?? {};
    const lease = { id, ttlSeconds, renewable, token, expiresAtMs: this.#after(ttlSeconds) };
    this.#leases.put(id, lease, token);
    return lease;
  }

  live(id: string): Lease | undefined {
    const lease = this.#leases.get(id);
    return lease && this.#now() < lease.expiresAtMs ? lease : undefined;
  }

  /** Returns the new time until the lease ends, in seconds. */
  renew(lease: Lease, increment: unknown): number {
    const seconds = secondsOf(increment, lease.ttlSeconds);
    this.#leases.put(lease.id, { ...lease, expiresAtMs: this.#after(seconds) }, lease.token);
    return seconds;
  }

  revoke(id: string): void {
    this.#leases.delete(id);
  }

  #after(seconds: number): number {
    return this.#now() + seconds * 1000;
  }

  #auth(client_token: string, accessor: string, lease_duration: number): Record<string, unknown> {
    const policies = ['default'];
    return {
      client_token,
      accessor,
      policies,
      token_policies: policies,
      lease_duration,
      renewable: true,
      token_type: 'service',
    };
  }
}

const secondsOf = (increment: unknown, standard: number): number =>
  Math.min(Math.max(Number(increment) || standard, 1), LONGEST_SECONDS);

const GET_CALLER_IDENTITY = /^Action=GetCallerIdentity&Version=2011-06-15$/;
const STS = /^https:\/\/sts(\.[a-z0-9-]+)?\.amazonaws\.com\/$/;
const SIGNED_FOR_STS =
  /^AWS4-HMAC-SHA256 Credential=\w+\/\d{8}\/[a-z0-9-]+\/sts\/aws4_request, SignedHeaders=[^,]*host[^,]*, Signature=[0-9a-f]{64}$/;

/** Whether the fields of a login are a signed request to STS that asks who the caller is. */
export function isCallerIdentityRequest(fields: Record<string, unknown>): boolean {
  const decoded = (name: string) => Buffer.from(textOf(fields[name]), 'base64').toString('utf8');
  if (textOf(fields.iam_http_request_method) !== 'POST' || !STS.test(decoded('iam_request_url'))) return false;
  if (!GET_CALLER_IDENTITY.test(decoded('iam_request_body'))) return false;
  try {
    const headers: Record<string, string> = JSON.parse(decoded('iam_request_headers'));
    const authorization = Object.entries(headers).find(([name]) => name.toLowerCase() === 'authorization')?.[1];
    return SIGNED_FOR_STS.test(authorization ?? '');
  } catch {
    return false;
  }
}

import { readFileSync, statSync } from 'node:fs';
import type { CredentialConfig, VaultConfig } from '../config.ts';
import {
  type CredentialSession,
  CredentialUnavailable,
  type FetchedSecret,
  TTL_MAX_SECONDS,
} from './credential-source.ts';
import { secretFields } from './secret-fields.ts';
import { callVault, type VaultResponse } from './vault-http.ts';

type VaultPlace = NonNullable<CredentialConfig['vault']>;

interface Lease {
  id: string;
  ttlSeconds: number;
}

/** One login for one command. When its token is revoked, Vault also revokes everything that was fetched with it. */
export class VaultSession implements CredentialSession {
  readonly #config: VaultConfig;
  #token: { value: string; ttlSeconds: number } | undefined;
  readonly #leases: Lease[] = [];

  constructor(config: VaultConfig) {
    this.#config = config;
  }

  async fetch(place: VaultPlace): Promise<FetchedSecret> {
    await this.login();
    return place.kv === undefined ? this.#databaseUser(place) : this.#keyValue(place.kv, place.mount ?? 'secret');
  }

  get renewAfterMs(): number | undefined {
    if (this.#token === undefined) return undefined;
    return renewalAfter([this.#token.ttlSeconds, ...this.#leases.map(({ ttlSeconds }) => ttlSeconds)]);
  }

  async renew(): Promise<number | undefined> {
    if (this.#token === undefined) return undefined;
    this.#token.ttlSeconds = await this.#renewToken();
    for (const lease of this.#leases) lease.ttlSeconds = await this.#renewLease(lease.id);
    return this.renewAfterMs;
  }

  async revoke(): Promise<boolean> {
    if (this.#token === undefined) return true;
    const leases = await Promise.all(
      this.#leases.map(({ id }) => this.#succeeds('PUT', 'sys/leases/revoke', { lease_id: id, sync: true })),
    );
    // Revokes its leases, too. It comes last, because it ends the right to do anything.
    const token = await this.#succeeds('POST', 'auth/token/revoke-self', {});
    this.#token = undefined;
    return token || (leases.length > 0 && leases.every(Boolean));
  }

  async login(): Promise<void> {
    if (this.#token !== undefined) return;
    const { auth } = await this.#call('POST', ...(await loginRequest(this.#config)));
    if (!auth) throw new CredentialUnavailable('Vault accepted the login, but returned no token');
    this.#token = { value: auth.client_token, ttlSeconds: auth.lease_duration };
    if (auth.lease_duration > TTL_MAX_SECONDS) {
      this.#token.ttlSeconds = await this.#renewToken().catch(() => auth.lease_duration);
    }
    await this.#requireShort(this.#token.ttlSeconds, 'tokens of this Vault role', 'token_ttl');
  }

  async #keyValue(path: string, mount: string): Promise<FetchedSecret> {
    const { data, request_id } = await this.#call('GET', `${mount}/data/${path}`);
    const values = data?.data;
    if (typeof values !== 'object' || values === null) {
      throw new CredentialUnavailable(`Vault has no secret at ${mount}/${path}, or its version was deleted`);
    }
    return { fields: secretFields(values), source: 'vault', auditId: request_id || null, ttlSeconds: 0 };
  }

  async #databaseUser({ database = '', mount = 'database' }: VaultPlace): Promise<FetchedSecret> {
    const { data, request_id, lease_id, lease_duration } = await this.#call('GET', `${mount}/creds/${database}`);
    const lease: Lease = { id: lease_id, ttlSeconds: lease_duration };
    this.#leases.push(lease);
    if (lease_duration > TTL_MAX_SECONDS) {
      lease.ttlSeconds = await this.#renewLease(lease_id).catch(() => lease_duration);
    }
    await this.#requireShort(lease.ttlSeconds, `users of the Vault role ${mount}/${database}`, 'default_ttl');
    const { ttlSeconds } = lease;
    return { fields: secretFields(data ?? {}), source: 'vault', auditId: request_id || null, ttlSeconds };
  }

  async #requireShort(ttl: number, what: string, setting: string): Promise<void> {
    if (ttl > 0 && ttl <= TTL_MAX_SECONDS) return;
    await this.revoke();
    throw new CredentialUnavailable(
      `${what} live for ${ttl === 0 ? 'ever' : `${ttl} s`}; set ${setting} of the role to ${TTL_MAX_SECONDS} s or less`,
    );
  }

  /** A renewal sets the time from now on, so it also shortens what lives too long. */
  async #renewLease(id: string): Promise<number> {
    const increment = TTL_MAX_SECONDS;
    return (await this.#call('PUT', 'sys/leases/renew', { lease_id: id, increment })).lease_duration;
  }

  async #renewToken(): Promise<number> {
    const { auth } = await this.#call('POST', 'auth/token/renew-self', { increment: TTL_MAX_SECONDS });
    return auth?.lease_duration ?? 0;
  }

  async #succeeds(method: 'PUT' | 'POST', path: string, body: unknown): Promise<boolean> {
    try {
      await this.#call(method, path, body);
      return true;
    } catch {
      return false;
    }
  }

  #call(method: 'GET' | 'PUT' | 'POST', path: string, body?: unknown): Promise<VaultResponse> {
    return callVault(this.#config, this.#token?.value, [method, path, body]);
  }
}

/** Half of the shortest time. */
function renewalAfter(ttls: readonly number[]): number | undefined {
  const shortest = Math.min(...ttls.filter((ttl) => ttl > 0));
  return Number.isFinite(shortest) ? shortest * 500 : undefined;
}

async function loginRequest({ auth }: VaultConfig): Promise<[path: string, body: unknown]> {
  if ('aws' in auth) {
    // Few agents use it, and it loads the AWS SDK.
    const { awsLogin } = await import('./aws-login.ts');
    return [`auth/${auth.aws.mount}/login`, await awsLogin(auth.aws)];
  }
  const { mount, roleId, secretIdFile } = auth.appRole;
  return [`auth/${mount}/login`, { role_id: roleId, secret_id: secretId(secretIdFile) }];
}

function secretId(file: string): string {
  try {
    const text = readFileSync(file, 'utf8').trim();
    if ((statSync(file).mode & 0o077) === 0) return text;
  } catch (cause) {
    throw new CredentialUnavailable(`cannot read the secret id: ${(cause as Error).message}`, { cause });
  }
  throw new CredentialUnavailable(`other users can read ${file}; run: chmod 600 ${file}, and issue a new secret id`);
}

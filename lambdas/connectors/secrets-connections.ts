import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import * as z from 'zod';
import { Cached } from '../entry/cached.ts';
import { tryParseJson } from '../entry/parse-json.ts';
import { systemClock } from '../entry/system.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { hashOf } from '../run/canonical-json.ts';
import { CountersignError } from '../run/errors.ts';
import type { Connections } from './connections.ts';
import type { Access } from './connector.ts';
import { isFor, withoutAddress } from './credential-address.ts';
import { TokenCache } from './token-cache.ts';

/** A rotated credential takes effect within this time. */
const CREDENTIALS_CACHED_MS = 60_000;

/** The field of a connection that people set: the credential that writes, or the one of plans. */
export type CredentialField = 'credential' | 'planCredential';

const Credentials = z.record(z.string(), z.unknown());

/**
 * Reads addresses from the tenant's definitions and credentials from one secret per tenant: a JSON object, connection
 * name → credential.
 */
export class SecretsConnections implements Connections {
  readonly #client: SecretsManagerClient;
  readonly #definitions: Pick<Definitions, 'connection'>;
  readonly #secretIds: Record<string, string>;
  readonly #now: () => number;
  readonly #field: CredentialField;
  readonly #open: Cached<Access>;
  readonly #tokens = new Map<string, { credentialHash: string; token: TokenCache }>();

  constructor(
    client: SecretsManagerClient,
    definitions: Pick<Definitions, 'connection'>,
    secretIds: Record<string, string>,
    now: () => number,
    field: CredentialField = 'credential',
  ) {
    this.#client = client;
    this.#definitions = definitions;
    this.#secretIds = secretIds;
    this.#now = now;
    this.#field = field;
    this.#open = new Cached(CREDENTIALS_CACHED_MS, now);
  }

  open(tenant: string, name: string): Promise<Access> {
    return this.#open.get(`${tenant}/${name}`, () => this.#read(tenant, name));
  }

  async #read(tenant: string, name: string): Promise<Access> {
    const [connection, credentials] = await Promise.all([
      this.#definitions.connection(tenant, name),
      this.#credentials(tenant),
    ]);
    if (!connection) {
      throw new CountersignError(
        'CONNECTION_MISSING',
        `${tenant} has no connection "${name}"; add it: countersign connections add`,
      );
    }
    const stored = credentials[name];
    if (stored === undefined) {
      throw new CountersignError('CONNECTION_MISSING', withoutCredential(tenant, name, this.#field));
    }
    const { baseUrl, instance, allowedHosts, allowedTables } = connection;
    const { credential, address } = withoutAddress(stored);
    if (!isFor(address, baseUrl)) {
      throw new CountersignError(
        'CONNECTION_MISSING',
        `the credential "${name}" of ${tenant} is for another address; send it again: countersign connections add`,
      );
    }
    return {
      baseUrl,
      instance,
      credential,
      token: this.#tokenOf(`${tenant}/${name}`, credential),
      ...(allowedHosts && { allowedHosts }),
      ...(allowedTables && { allowedTables }),
    };
  }

  /** A token stays cached when the credential is read again, unless the credential has changed. */
  #tokenOf(connection: string, credential: unknown): TokenCache {
    const credentialHash = hashOf(credential);
    const cached = this.#tokens.get(connection);
    if (cached?.credentialHash === credentialHash) return cached.token;
    const token = new TokenCache(this.#now);
    this.#tokens.set(connection, { credentialHash, token });
    return token;
  }

  async #credentials(tenant: string): Promise<Record<string, unknown>> {
    const SecretId = this.#secretIds[tenant];
    if (!SecretId) throw new CountersignError('CONNECTION_MISSING', `tenant ${tenant} is not part of this stage`);
    const { SecretString } = await this.#client.send(new GetSecretValueCommand({ SecretId }));
    const credentials = Credentials.safeParse(tryParseJson(SecretString ?? '{}'));
    if (credentials.success) return credentials.data;
    throw new CountersignError(
      'CONNECTION_MISSING',
      `a credentials secret of ${tenant} is not a JSON object; replace it (docs/administration.md, "Credentials")`,
    );
  }
}

const withoutCredential = (tenant: string, name: string, field: CredentialField): string =>
  field === 'credential'
    ? `${tenant} has no credential "${name}"; add it: countersign connections add`
    : `${tenant} has no credential "${name}" for plans, which cannot read this system; add planCredential to FILE, then: countersign connections add FILE`;

/** Connections whose credentials are in these secrets, one per tenant. */
export const systemConnections = (
  definitions: Pick<Definitions, 'connection'>,
  secretIds: Record<string, string>,
  field?: CredentialField,
) => new SecretsConnections(new SecretsManagerClient(), definitions, secretIds, systemClock.now, field);

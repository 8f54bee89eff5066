import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { Kept } from '../entry/kept.ts';
import type { Definitions } from '../pipeline/definitions.ts';
import { CountersignError } from '../run/errors.ts';
import type { Connections } from './connections.ts';
import type { Access } from './connector.ts';

/** A rotated credential is picked up within this time. */
const CREDENTIALS_KEPT_MS = 60_000;

/** Addresses from the tenant's definitions, credentials from its one secret: a JSON object, connection name → credential. */
export class SecretsConnections implements Connections {
  readonly #client: SecretsManagerClient;
  readonly #definitions: Pick<Definitions, 'connection'>;
  readonly #secretArns: Record<string, string>;
  readonly #open: Kept<Access>;

  constructor(
    client: SecretsManagerClient,
    definitions: Pick<Definitions, 'connection'>,
    secretArns: Record<string, string>,
    now: () => number,
  ) {
    this.#client = client;
    this.#definitions = definitions;
    this.#secretArns = secretArns;
    this.#open = new Kept(CREDENTIALS_KEPT_MS, now);
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
      throw new CountersignError('CONNECTION_MISSING', `${tenant} has no connection "${name}"; define it first`);
    }
    const credential = credentials[name];
    if (credential === undefined) {
      throw new CountersignError('CONNECTION_MISSING', `the connections secret of ${tenant} has no entry "${name}"`);
    }
    return { baseUrl: connection.baseUrl, instance: connection.instance, credential };
  }

  async #credentials(tenant: string): Promise<Record<string, unknown>> {
    const SecretId = this.#secretArns[tenant];
    if (!SecretId) throw new CountersignError('CONNECTION_MISSING', `tenant ${tenant} is not part of this stage`);
    const { SecretString } = await this.#client.send(new GetSecretValueCommand({ SecretId }));
    return JSON.parse(SecretString ?? '{}');
  }
}

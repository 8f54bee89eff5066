import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { Cached } from '../entry/cached.ts';
import { LOGGED } from '../entry/environment.ts';
import { tryParseJson } from '../entry/parse-json.ts';
import type { Log } from '../entry/ports.ts';
import { checkSecrets, SecretDocument, type SigningSecrets, type SigningSource } from './signing-secrets.ts';

/** A removed secret stops working within this time. */
const SECRETS_CACHED_MS = 60_000;

/** A malformed or short secret is logged and not used; the other secrets of the tenant are. */
export class SecretsSigningSecrets implements SigningSecrets {
  readonly #client: SecretsManagerClient;
  readonly #secretIds: Record<string, string>;
  readonly #log: Log;
  readonly #documents: Cached<Record<string, string[]>>;

  constructor(client: SecretsManagerClient, secretIds: Record<string, string>, now: () => number, log: Log) {
    this.#client = client;
    this.#secretIds = secretIds;
    this.#log = log;
    this.#documents = new Cached(SECRETS_CACHED_MS, now);
  }

  async secretsFor(tenant: string, source: SigningSource): Promise<readonly string[]> {
    const isKnown = Object.hasOwn(this.#secretIds, tenant);
    // For an unknown tenant another tenant's secret is read and not used, so that the duration does not differ.
    const read = isKnown ? tenant : (Object.keys(this.#secretIds)[0] ?? '');
    const document = await this.#documents.get(tenant, () => this.#read(read, this.#secretIds[read] ?? ''));
    return (isKnown && document[source]) || [];
  }

  async #read(tenant: string, secretId: string) {
    const { SecretString } = await this.#client.send(new GetSecretValueCommand({ SecretId: secretId }));
    const document = SecretDocument.safeParse(tryParseJson(SecretString ?? '{}'));
    if (!document.success) {
      throw new Error('a signing secret is not of the form {"github": ["current", "previous"]}; replace it');
    }
    const { usable, problems } = checkSecrets(document.data);
    for (const problem of problems) this.#log.error(LOGGED.secretNotUsed, { tenant, ...problem });
    return usable;
  }
}

import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import * as z from 'zod';
import { Kept } from '../entry/kept.ts';
import type { TriggerSource } from '../run/run.ts';
import type { SigningSecrets } from './signing-secrets.ts';

/** A removed secret stops working within this time. */
const SECRETS_KEPT_MS = 60_000;

/** One secret per tenant: `{"github": ["current", "previous"], "servicenow": ["..."]}`. */
const SecretDocument = z.record(z.string(), z.union([z.string().transform((one) => [one]), z.array(z.string())]));

export class SecretsSigningSecrets implements SigningSecrets {
  readonly #client: SecretsManagerClient;
  readonly #secretIds: Record<string, string>;
  readonly #documents: Kept<z.output<typeof SecretDocument>>;

  constructor(client: SecretsManagerClient, secretIds: Record<string, string>, now: () => number) {
    this.#client = client;
    this.#secretIds = secretIds;
    this.#documents = new Kept(SECRETS_KEPT_MS, now);
  }

  async secretsFor(tenant: string, source: TriggerSource | 'slack'): Promise<readonly string[]> {
    const secretId = Object.hasOwn(this.#secretIds, tenant) ? this.#secretIds[tenant] : undefined;
    if (secretId === undefined) return [];
    const document = await this.#documents.get(secretId, () => this.#read(secretId));
    return (document[source] ?? []).filter((secret) => secret !== '');
  }

  async #read(secretId: string) {
    const { SecretString } = await this.#client.send(new GetSecretValueCommand({ SecretId: secretId }));
    const document = SecretDocument.safeParse(parsed(SecretString ?? '{}'));
    if (document.success) return document.data;
    throw new Error('a signing secret is not of the form {"github": ["current", "previous"]}; write it anew');
  }
}

/** The parser's own message quotes the text, which here is a secret. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

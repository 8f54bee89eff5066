import {
  GetSecretValueCommand,
  InvalidParameterException,
  PutSecretValueCommand,
  type SecretsManagerClient,
  UpdateSecretVersionStageCommand,
} from '@aws-sdk/client-secrets-manager';
import * as z from 'zod';
import { tryParseJson } from '../entry/parse-json.ts';
import { type SecretPurpose, secretName } from '../entry/tenant-secrets.ts';
import type { Entries, ReadDocument, SecretDocuments } from './secret-documents.ts';

/** The label of the version that readers get. */
const CURRENT = 'AWSCURRENT';
/** The label of a version that is stored and not yet current. A later one takes the label over. */
const STAGED = 'COUNTERSIGN_STAGED';

const Document = z.record(z.string(), z.unknown());

/**
 * Secrets Manager cannot write under a condition, but it moves a label only from the version that the request names. So a
 * change is stored under another label first, and becomes current only if nobody else has changed the secret meanwhile.
 */
export class SecretsSecretDocuments implements SecretDocuments {
  readonly #client: SecretsManagerClient;
  readonly #stage: string;

  constructor(client: SecretsManagerClient, stage: string) {
    this.#client = client;
    this.#stage = stage;
  }

  async read(tenant: string, purpose: SecretPurpose): Promise<ReadDocument> {
    const command = new GetSecretValueCommand({ SecretId: secretName(this.#stage, tenant, purpose) });
    const { SecretString, VersionId = '' } = await this.#client.send(command);
    return { entries: Document.safeParse(tryParseJson(SecretString ?? '')).data, version: VersionId };
  }

  async stage(tenant: string, purpose: SecretPurpose, entries: Entries, version: string): Promise<void> {
    await this.#client.send(
      new PutSecretValueCommand({
        SecretId: secretName(this.#stage, tenant, purpose),
        SecretString: JSON.stringify(entries),
        ClientRequestToken: version,
        VersionStages: [STAGED],
      }),
    );
  }

  async publish(tenant: string, purpose: SecretPurpose, version: string, replaces: string): Promise<boolean> {
    const SecretId = secretName(this.#stage, tenant, purpose);
    try {
      await this.#client.send(
        new UpdateSecretVersionStageCommand({
          SecretId,
          VersionStage: CURRENT,
          MoveToVersionId: version,
          RemoveFromVersionId: replaces,
        }),
      );
      return true;
    } catch (error) {
      if (!(error instanceof InvalidParameterException)) throw error;
      // The label is on another version: ours, if the response of an earlier attempt was lost, or somebody else's.
      const { version: current } = await this.read(tenant, purpose);
      if (current === replaces) throw error;
      return current === version;
    }
  }
}

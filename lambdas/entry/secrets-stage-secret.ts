import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { Cached } from './cached.ts';
import { systemClock } from './system.ts';

const SECRET_CACHED_MS = 5 * 60_000;

/** Reads a secret of the stage with which we sign when it is first needed, and caches it. */
export function stageSecret(SecretId: string): () => Promise<string> {
  const client = new SecretsManagerClient();
  const cache = new Cached<string>(SECRET_CACHED_MS, systemClock.now);
  return () =>
    cache.get('secret', async () => {
      const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId }));
      if (!SecretString) throw new Error(`the secret ${SecretId} is empty`);
      return SecretString;
    });
}

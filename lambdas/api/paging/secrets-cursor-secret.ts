import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { Cached } from '../../entry/cached.ts';
import { systemClock } from '../../entry/system.ts';

const SECRET_CACHED_MS = 5 * 60_000;

/** Reads the secret that signs cursors when it is first needed, and caches it. */
export function cursorSecret(SecretId: string): () => Promise<string> {
  const client = new SecretsManagerClient();
  const cache = new Cached<string>(SECRET_CACHED_MS, systemClock.now);
  return () =>
    cache.get('cursor', async () => {
      const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId }));
      if (!SecretString) throw new Error('the cursor secret is empty');
      return SecretString;
    });
}

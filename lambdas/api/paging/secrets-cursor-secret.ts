import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { Cached } from '../../entry/cached.ts';
import { systemClock } from '../../entry/system.ts';

const SECRET_CACHED_MS = 5 * 60_000;

/** The secret that cursors are signed with, read when the first is made and kept for a while. */
export function cursorSecret(SecretId: string): () => Promise<string> {
  const client = new SecretsManagerClient();
  const kept = new Cached<string>(SECRET_CACHED_MS, systemClock.now);
  return () =>
    kept.get('cursor', async () => {
      const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId }));
      if (!SecretString) throw new Error('the cursor secret is empty');
      return SecretString;
    });
}

import { GetSecretValueCommand, PutSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import type { TestHost } from './test-host.ts';

/** Longer than a warm function caches credentials. */
const KNOWN_EVERYWHERE_AFTER_MS = 61_000;

/** A secret of acme: the credentials for targets, or for messages. */
type Purpose = 'Connection' | 'Messaging';

/** The text of the secret with all credentials for one purpose. */
export async function saveCredentials(
  host: TestHost,
  SecretString: string,
  purpose: Purpose = 'Connection',
): Promise<void> {
  const client = new SecretsManagerClient(host.clientConfig());
  await client.send(new PutSecretValueCommand({ SecretId: secretOf(host, purpose), SecretString }));
  client.destroy();
  await host.advance(KNOWN_EVERYWHERE_AFTER_MS);
}

export async function credentials(host: TestHost): Promise<Record<string, unknown>> {
  const client = new SecretsManagerClient(host.clientConfig());
  const { SecretString = '{}' } = await client.send(
    new GetSecretValueCommand({ SecretId: secretOf(host, 'Connection') }),
  );
  client.destroy();
  return JSON.parse(SecretString);
}

/** Lets the `http` tools call the port of the host, where the simulators are. */
export const ownPort = (host: TestHost, authorization: string) => ({
  hosts: { [new URL(host.url).host]: { headers: { authorization } } },
});

const secretOf = (host: TestHost, purpose: Purpose) =>
  host.only('AWS::SecretsManager::Secret', `${purpose}Secretsacme`).ref;

import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { describe, expect, it } from 'vitest';
import { SecretsConnections } from '../../lambdas/connectors/secrets-connections.ts';
import { SecretsSigningSecrets } from '../../lambdas/intake/secrets-signing-secrets.ts';
import { MemoryLog } from '../fakes/memory/memory-log.ts';

/** As people may paste it into the console: bare, incomplete, or of another type. */
const PASTED = [
  'canary-of-a-secret',
  '{"github": {"token": "canary-of-a-se',
  '["canary-of-a-secret"]',
  '"canary"',
  'null',
];

const holding = (SecretString: string) => ({ send: async () => ({ SecretString }) }) as unknown as SecretsManagerClient;
const connection = { name: 'github', baseUrl: 'http://github', instance: 'acme' };

async function refusal(work: Promise<unknown>): Promise<Error> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error('it was not refused');
  return error;
}

describe.each(PASTED)('a secret that reads %s', (pasted) => {
  it('opens no connection; the error says what to do and does not quote it', async () => {
    const definitions = { connection: async () => connection };
    const connections = new SecretsConnections(holding(pasted), definitions, { acme: 'arn' }, Date.now);
    const error = await refusal(connections.open('acme', 'github'));
    expect(error).toMatchObject({ code: 'CONNECTION_MISSING', message: expect.stringContaining('replace it') });
    expect(`${error.stack} ${String(error.cause)}`).not.toContain('canary');
  });

  it('verifies no signature and is not quoted', async () => {
    const secrets = new SecretsSigningSecrets(holding(pasted), { acme: 'arn' }, Date.now, new MemoryLog());
    const error = await refusal(secrets.secretsFor('acme', 'github'));
    expect(error.message).toContain('replace it');
    expect(`${error.stack} ${String(error.cause)}`).not.toContain('canary');
  });
});

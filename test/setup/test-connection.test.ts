import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { expect, it } from 'vitest';
import { type CredentialField, SecretsConnections } from '../../lambdas/connectors/secrets-connections.ts';
import { testConnection } from '../../lambdas/setup/test-connection/test-connection.ts';
import { MemoryDefinitions } from '../fakes/memory/memory-definitions.ts';
import { GITHUB } from './setup-world.ts';

it('the test of a connection says which of its two credentials is missing', async () => {
  const definitions = new MemoryDefinitions();
  const { baseUrl, instance } = GITHUB;
  await definitions.saveConnection('acme', { name: 'github', baseUrl, instance });
  const client = { send: async () => ({ SecretString: '{}' }) } as unknown as SecretsManagerClient;
  const without = (field: CredentialField) =>
    new SecretsConnections(client, definitions, { acme: 'arn' }, Date.now, field);
  const tester = { connections: without('credential'), planConnections: without('planCredential'), definitions };
  expect(await testConnection(tester, 'acme', 'github')).toEqual([
    {
      level: 'error',
      credential: 'credential',
      text: 'acme has no credential "github"; add it: countersign connections add',
    },
    { level: 'warning', credential: 'planCredential', text: expect.stringContaining('add planCredential to FILE') },
  ]);
});

import { PutSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { SecretsConnections } from '../../../lambdas/connectors/secrets-connections.ts';
import { secretName } from '../../../lambdas/entry/tenant-secrets.ts';
import { SecretsSigningSecrets } from '../../../lambdas/intake/secrets-signing-secrets.ts';
import { SecretsSecretDocuments } from '../../../lambdas/setup/secrets-secret-documents.ts';
import { LocalSecretsManager } from '../../../local/cloud/secrets-manager.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { MemoryConnections } from '../../fakes/memory/memory-connections.ts';
import { MemoryDefinitions } from '../../fakes/memory/memory-definitions.ts';
import { MemoryLog } from '../../fakes/memory/memory-log.ts';
import { MemorySecretDocuments } from '../../fakes/memory/memory-secret-documents.ts';
import { MemorySigningSecrets } from '../../fakes/memory/memory-signing-secrets.ts';
import { openWire, temporaryFolder } from '../../local/cloud/wire.ts';
import { describeConnectionsContract } from '../connectors/connections-contract.ts';
import { describeSecretDocumentsContract } from './secret-documents-contract.ts';
import { describeSigningSecretsContract } from './signing-secrets-contract.ts';

const close = async () => {};
const arnOf = (tenant: string) => `arn:aws:secretsmanager:us-east-1:000000000000:secret:${tenant}-AbCdEf`;

/** One secret per tenant in the local Secrets Manager, behind the real SDK. */
async function openSecretsManager(byTenant: Record<string, object>) {
  const folder = temporaryFolder();
  const secrets = Object.entries(byTenant).map(([tenant, value]) => ({
    arn: arnOf(tenant),
    name: tenant,
    initialValue: JSON.stringify(value),
  }));
  const service = new LocalSecretsManager({ dataFolder: folder.path, secrets });
  const wire = await openWire({ json: { secretsmanager: service } });
  const client = new SecretsManagerClient(wire.client);
  return {
    client,
    arns: Object.fromEntries(Object.keys(byTenant).map((tenant) => [tenant, arnOf(tenant)])),
    close: async () => {
      client.destroy();
      await wire.close();
      folder.remove();
    },
  };
}

describeSigningSecretsContract('memory', async (initially) => {
  const secrets = new MemorySigningSecrets(initially);
  return { secrets, change: async (tenant, changed) => secrets.change(tenant, changed), advance: () => {}, close };
});
describeSigningSecretsContract('Secrets Manager', async (initially) => {
  const manager = await openSecretsManager(initially);
  const clock = new FakeClock();
  return {
    secrets: new SecretsSigningSecrets(manager.client, manager.arns, () => clock.now(), new MemoryLog()),
    change: async (tenant, changed) => {
      const SecretString = JSON.stringify(changed);
      await manager.client.send(new PutSecretValueCommand({ SecretId: arnOf(tenant), SecretString }));
    },
    advance: (ms) => clock.advance(ms),
    close: manager.close,
  };
});

describeSecretDocumentsContract('memory', async () => {
  const documents = new MemorySecretDocuments();
  documents.set('acme', 'connections', { github: { token: 'a' } });
  return { documents, close };
});
describeSecretDocumentsContract('Secrets Manager', async () => {
  const name = secretName('local', 'acme', 'connections');
  const manager = await openSecretsManager({ [name]: { github: { token: 'a' } } });
  return { documents: new SecretsSecretDocuments(manager.client, 'local'), close: manager.close };
});

describeConnectionsContract('memory', async (initially) => ({ connections: new MemoryConnections(initially), close }));
describeConnectionsContract('Secrets Manager', async (initially) => {
  const definitions = new MemoryDefinitions();
  const credentials: Record<string, Record<string, unknown>> = {};
  for (const [tenant, connections] of Object.entries(initially)) {
    for (const [name, { baseUrl, instance, credential }] of Object.entries(connections)) {
      await definitions.saveConnection(tenant, { name, baseUrl, instance });
      credentials[tenant] = { ...credentials[tenant], [name]: credential };
    }
  }
  const manager = await openSecretsManager(credentials);
  const clock = new FakeClock();
  return {
    connections: new SecretsConnections(manager.client, definitions, manager.arns, () => clock.now()),
    close: manager.close,
  };
});

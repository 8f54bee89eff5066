import { statSync } from 'node:fs';
import { join } from 'node:path';
import {
  DescribeSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LocalSecretsManager, type SecretDefinition } from '../../../local/cloud/secrets-manager.ts';
import { openWire, temporaryFolder, type Wire } from './wire.ts';

const arn = (name: string) => `arn:aws:secretsmanager:us-east-1:000000000000:secret:${name}-AbCdEf`;
const secrets: SecretDefinition[] = [
  { arn: arn('github'), name: 'github', initialValue: 'local-github-secret' },
  { arn: arn('empty'), name: 'empty' },
  {
    arn: arn('generated'),
    name: 'generated',
    generate: {
      length: 40,
      excludePunctuation: true,
      excludeCharacters: 'abc',
      secretStringTemplate: '{"user":"app"}',
      generateStringKey: 'password',
    },
  },
];

describe('the local Secrets Manager, seen through the AWS SDK', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let wire: Wire;
  let client: SecretsManagerClient;

  async function open(definitions = secrets): Promise<void> {
    const service = new LocalSecretsManager({ dataFolder: folder.path, secrets: definitions });
    wire = await openWire({ json: { secretsmanager: service } });
    client = new SecretsManagerClient(wire.client);
  }
  async function close(): Promise<void> {
    client.destroy();
    await wire.close();
  }
  beforeEach(async () => {
    folder = temporaryFolder();
    await open();
  });
  afterEach(async () => {
    await close();
    folder.remove();
  });

  const get = (SecretId: string, more: { VersionStage?: string; VersionId?: string } = {}) =>
    client.send(new GetSecretValueCommand({ SecretId, ...more }));
  const put = (SecretString: string, ClientRequestToken?: string) =>
    client.send(new PutSecretValueCommand({ SecretId: 'github', SecretString, ClientRequestToken }));

  it('finds a secret by name, ARN, and ARN without its suffix', async () => {
    for (const id of ['github', arn('github'), arn('github').slice(0, -'-AbCdEf'.length)]) {
      expect((await get(id)).SecretString).toBe('local-github-secret');
    }
    await expect(get('unknown')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    await expect(get('empty')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('moves AWSCURRENT to a new value and keeps the old one as AWSPREVIOUS', async () => {
    await put('second');
    const { VersionId } = await put('third');
    expect((await get('github')).SecretString).toBe('third');
    expect((await get('github', { VersionStage: 'AWSPREVIOUS' })).SecretString).toBe('second');
    expect((await get('github', { VersionId })).VersionStages).toEqual(['AWSCURRENT']);
    const { VersionIdsToStages } = await client.send(new DescribeSecretCommand({ SecretId: 'github' }));
    expect(Object.values(VersionIdsToStages ?? {}).sort()).toEqual([['AWSCURRENT'], ['AWSPREVIOUS']]);
  });

  it('stores a value once per request token', async () => {
    const token = '11111111-1111-4111-8111-111111111111';
    await put('a', token);
    await put('a', token);
    expect((await get('github', { VersionStage: 'AWSPREVIOUS' })).SecretString).toBe('local-github-secret');
    await expect(put('b', token)).rejects.toMatchObject({ name: 'ResourceExistsException' });
  });

  it('keeps a stored value over the initial one when opened again, in a file only its owner reads', async () => {
    await put('rotated');
    const generated = (await get('generated')).SecretString;
    await close();
    await open();
    expect((await get('github')).SecretString).toBe('rotated');
    expect((await get('generated')).SecretString).toBe(generated);
    expect(statSync(join(folder.path, 'secrets.json')).mode & 0o777).toBe(0o600);
  });

  it('generates a value by the rules of the template', async () => {
    const { user, password } = JSON.parse((await get('generated')).SecretString ?? '');
    expect(user).toBe('app');
    expect(password).toMatch(/^[d-zA-Z0-9]{40}$/);
  });
});

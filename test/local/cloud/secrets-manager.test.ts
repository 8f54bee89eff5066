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
      excludePunctuation: true,
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

  const get = (SecretId: string) => client.send(new GetSecretValueCommand({ SecretId }));
  const put = (SecretString: string) => client.send(new PutSecretValueCommand({ SecretId: 'github', SecretString }));

  it('finds a secret by name and by ARN', async () => {
    for (const id of ['github', arn('github')]) {
      expect((await get(id)).SecretString).toBe('local-github-secret');
    }
    await expect(get('unknown')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    await expect(get('empty')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('replaces the current value with a new version', async () => {
    const before = await get('github');
    const { VersionId } = await put('second');
    expect(VersionId).not.toBe(before.VersionId);
    expect(await get('github')).toMatchObject({ SecretString: 'second', VersionId, VersionStages: ['AWSCURRENT'] });
  });

  it('refuses an operation or a parameter that it does not support, by name', async () => {
    const described = client.send(new DescribeSecretCommand({ SecretId: 'github' }));
    await expect(described).rejects.toThrow('does not support DescribeSecret');
    const previous = client.send(new GetSecretValueCommand({ SecretId: 'github', VersionStage: 'AWSPREVIOUS' }));
    await expect(previous).rejects.toThrow('does not support the parameter VersionStage');
  });

  it('keeps a stored value across a restart, in a file that only its owner can read', async () => {
    await put('rotated');
    const generated = (await get('generated')).SecretString;
    await close();
    await open();
    expect((await get('github')).SecretString).toBe('rotated');
    expect((await get('generated')).SecretString).toBe(generated);
    expect(statSync(join(folder.path, 'secret-values.json')).mode & 0o777).toBe(0o600);
  });

  it('generates a value by the rules of the template', async () => {
    const { user, password } = JSON.parse((await get('generated')).SecretString ?? '');
    expect(user).toBe('app');
    expect(password).toMatch(/^[a-zA-Z0-9]{32}$/);
  });
});

import type { AwsCredentials } from '../../lambdas/entry/sign-aws-request.ts';
import { type CredentialSession, CredentialUnavailable, type FetchedSecret } from './credential-source.ts';
import { parsedFields } from './secret-fields.ts';

/** Loaded when a command needs it: the SDK would double the memory of an idle agent. */
const sdk = () => import('@aws-sdk/client-secrets-manager');

/** The credentials of this host, as every AWS SDK finds them: variables, profile, container, instance. */
export async function awsCredentials(region: string): Promise<AwsCredentials | undefined> {
  const { SecretsManagerClient } = await sdk();
  const client = new SecretsManagerClient({ region });
  try {
    return await client.config.credentials();
  } catch {
    return undefined;
  } finally {
    client.destroy();
  }
}

/** Secrets Manager returns static values: there is nothing to renew or revoke. Rotation replaces them. */
export class SecretsManagerSession implements CredentialSession {
  readonly renewAfterMs = undefined;

  async fetch({ arn }: { arn: string }): Promise<FetchedSecret> {
    const { SecretsManagerClient, GetSecretValueCommand } = await sdk();
    const client = new SecretsManagerClient({ region: arn.split(':')[3] ?? '', maxAttempts: 2 });
    try {
      const { SecretString, SecretBinary, $metadata } = await client.send(new GetSecretValueCommand({ SecretId: arn }));
      const fields = parsedFields(SecretString ?? Buffer.from(SecretBinary ?? []).toString('utf8'));
      SecretBinary?.fill(0);
      return { fields, source: 'secrets_manager', auditId: $metadata.requestId ?? null, ttlSeconds: 0 };
    } catch (cause) {
      const { name } = cause as Error;
      throw new CredentialUnavailable(
        `Secrets Manager refused ${arn} (${name}); check the ARN and the role of this host`,
        {
          cause,
        },
      );
    } finally {
      client.destroy();
    }
  }

  async renew(): Promise<undefined> {
    return undefined;
  }

  async revoke(): Promise<boolean> {
    return false;
  }
}

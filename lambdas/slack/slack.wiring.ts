import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { systemClock, systemLog } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { SecretsSigningSecrets } from '../intake/secrets-signing-secrets.ts';
import type { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { TeamTenants } from './request/team-tenants.ts';

export function wireSlackRequests(
  stored: DynamoDefinitions,
  environment: { STAGE: string; TENANTS: readonly string[] },
) {
  return {
    teams: new TeamTenants(environment.TENANTS, stored, systemClock.now),
    secrets: new SecretsSigningSecrets(
      new SecretsManagerClient(),
      secretNames(environment, 'webhook-signing'),
      systemClock.now,
      systemLog,
    ),
    clock: systemClock,
    log: systemLog,
  };
}

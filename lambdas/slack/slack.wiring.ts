import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { readEnvironment } from '../entry/environment.ts';
import { systemClock, systemLog, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { SecretsSigningSecrets } from '../intake/secrets-signing-secrets.ts';
import { CachedDefinitions } from '../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import { SlackEnvironment } from './environment.ts';
import type { Commands } from './handle-command.ts';
import { TeamTenants } from './request/team-tenants.ts';

/** For the functions that only read. */
export function wireSlack(): Commands {
  const environment = readEnvironment(SlackEnvironment);
  const dynamo = new DynamoDBClient();
  const stored = new DynamoDefinitions(dynamo, environment.RUN_TABLE);
  return {
    ...wireSlackRequests(stored, environment),
    runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
    definitions: new CachedDefinitions(stored, systemClock.now),
  };
}

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

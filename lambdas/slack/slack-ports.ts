import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { readEnvironment } from '../entry/environment.ts';
import { systemClock, systemLog, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { SecretsSigningSecrets } from '../intake/secrets-signing-secrets.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { KeptDefinitions } from '../pipeline/kept-definitions.ts';
import { DynamoRunStore } from '../run/dynamo-run-store.ts';
import type { Commands } from './commands.ts';
import { SlackDoorEnvironment } from './environment.ts';
import { TeamTenants } from './team-tenants.ts';

/** What the functions that only answer are built from. */
export function slackPorts(): Commands {
  const environment = readEnvironment(SlackDoorEnvironment);
  const dynamo = new DynamoDBClient();
  const stored = new DynamoDefinitions(dynamo, environment.RUN_TABLE);
  return {
    ...doorPorts(stored, environment),
    runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
    definitions: new KeptDefinitions(stored, systemClock.now),
  };
}

export function doorPorts(stored: DynamoDefinitions, environment: { STAGE: string; TENANTS: readonly string[] }) {
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

import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { readEnvironment } from '../entry/environment.ts';
import { httpHandler } from '../entry/http.ts';
import { Kept } from '../entry/kept.ts';
import { systemClock, systemPause } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { KeptDefinitions } from '../pipeline/kept-definitions.ts';
import { DynamoRunStore } from '../run/dynamo-run-store.ts';
import { ApiEnvironment } from './environment.ts';
import { answerRuns } from './runs-api.ts';

const SECRET_KEPT_MS = 5 * 60_000;

const environment = readEnvironment(ApiEnvironment);
const dynamo = new DynamoDBClient();
const secrets = new SecretsManagerClient();
const kept = new Kept<string>(SECRET_KEPT_MS, systemClock.now);

async function readSecret(SecretId: string): Promise<string> {
  const { SecretString } = await secrets.send(new GetSecretValueCommand({ SecretId }));
  if (!SecretString) throw new Error('the cursor secret is empty');
  return SecretString;
}

const api = {
  runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause),
  definitions: new KeptDefinitions(new DynamoDefinitions(dynamo, environment.RUN_TABLE), systemClock.now),
  cursorSecret: () => kept.get('cursor', () => readSecret(environment.CURSOR_SECRET_ARN)),
};

export const handler = httpHandler((event) => answerRuns(api, event));

import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { systemClock, systemPause } from '../../entry/system.ts';
import { CachedDefinitions } from '../../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../../run/dynamo/dynamo-run-store.ts';
import { ApiEnvironment } from '../environment.ts';
import { cursorSecret } from '../paging/secrets-cursor-secret.ts';
import { handleRuns } from './runs.ts';

const environment = readEnvironment(ApiEnvironment);
const dynamo = new DynamoDBClient();

const api = {
  runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
  definitions: new CachedDefinitions(new DynamoDefinitions(dynamo, environment.RUN_TABLE), systemClock.now),
  cursorSecret: cursorSecret(environment.CURSOR_SECRET_ARN),
};

export const handler = httpHandler((event) => handleRuns(api, event));

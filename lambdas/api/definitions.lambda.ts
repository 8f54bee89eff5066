import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { readEnvironment } from '../entry/environment.ts';
import { httpHandler } from '../entry/http.ts';
import { systemClock } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { answerDefinitions } from './definitions-api.ts';
import { ApiEnvironment } from './environment.ts';
import { cursorSecret } from './secrets-cursor-secret.ts';

const environment = readEnvironment(ApiEnvironment);

const api = {
  definitions: new DynamoDefinitions(new DynamoDBClient(), environment.RUN_TABLE),
  cursorSecret: cursorSecret(environment.CURSOR_SECRET_ARN),
  clock: systemClock,
};

export const handler = httpHandler((event) => answerDefinitions(api, event));

import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { readEnvironment } from '../entry/environment.ts';
import { httpHandler } from '../entry/http.ts';
import { systemClock } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { DynamoWorkflowCatalog } from '../workflow/dynamo-workflow-catalog.ts';
import { answerDefinitions } from './definitions-api.ts';
import { ApiEnvironment } from './environment.ts';
import { cursorSecret } from './secrets-cursor-secret.ts';

const environment = readEnvironment(ApiEnvironment);
const dynamo = new DynamoDBClient();

const api = {
  definitions: new DynamoDefinitions(dynamo, environment.RUN_TABLE),
  catalog: new DynamoWorkflowCatalog(dynamo, environment.RUN_TABLE),
  cursorSecret: cursorSecret(environment.CURSOR_SECRET_ARN),
  clock: systemClock,
};

export const handler = httpHandler((event) => answerDefinitions(api, event));

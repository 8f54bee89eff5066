import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoAgentRegistry } from '../../agents/dynamo-agent-registry.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemClock, systemIds } from '../../entry/system.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { ApiEnvironment } from '../environment.ts';
import { handleAgents } from './agents.ts';
import { DynamoAgentChanges } from './dynamo-agent-changes.ts';

const { RUN_TABLE, CURSOR_SECRET_ARN } = readEnvironment(ApiEnvironment);
const dynamo = new DynamoDBClient();

const api = {
  agents: new DynamoAgentRegistry(dynamo, RUN_TABLE),
  changes: new DynamoAgentChanges(dynamo, RUN_TABLE),
  definitions: new DynamoDefinitions(dynamo, RUN_TABLE),
  cursorSecret: stageSecret(CURSOR_SECRET_ARN),
  clock: systemClock,
  ids: systemIds,
  newSecret: () => randomBytes(32).toString('base64url'),
};

export const handler = httpHandler((event) => handleAgents(api, event));

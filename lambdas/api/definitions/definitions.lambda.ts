import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoAgentRegistry } from '../../agents/dynamo-agent-registry.ts';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemClock, systemIds } from '../../entry/system.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { DynamoScheduleStore } from '../../schedules/dynamo-schedule-store.ts';
import { wireExpressions } from '../../workflow/expressions/expressions.wiring.ts';
import { DefinitionsEnvironment } from '../environment.ts';
import { handleDefinitions } from './definitions.ts';

const environment = readEnvironment(DefinitionsEnvironment);
const dynamo = new DynamoDBClient();

const api = {
  definitions: new DynamoDefinitions(dynamo, environment.RUN_TABLE),
  agents: new DynamoAgentRegistry(dynamo, environment.RUN_TABLE),
  schedules: new DynamoScheduleStore(dynamo, environment.RUN_TABLE),
  cursorSecret: stageSecret(environment.CURSOR_SECRET_ARN),
  clock: systemClock,
  ids: systemIds,
  peopleRules: {
    coolDownMs: environment.APPROVER_COOL_DOWN_HOURS * 60 * 60 * 1000,
    secondOwner: environment.STAGE_KIND === 'prod',
  },
  expressions: wireExpressions(),
};

export const handler = httpHandler((event) => handleDefinitions(api, event));

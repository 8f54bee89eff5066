import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { AwsEnvironment, readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemClock, systemIds } from '../../entry/system.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { invokedCredentials } from '../../setup/invoked-credentials.ts';
import { DynamoApiKeys } from '../authorizer/dynamo-api-keys.ts';
import { SetupEnvironment } from '../environment.ts';
import { handleSetup } from './setup.ts';

const environment = readEnvironment(SetupEnvironment);

const dynamo = new DynamoDBClient();
const keys = new DynamoApiKeys(dynamo, environment.RUN_TABLE);

const api = {
  definitions: new DynamoDefinitions(dynamo, environment.RUN_TABLE),
  credentials: invokedCredentials(environment.CREDENTIALS_FUNCTION, readEnvironment(AwsEnvironment)),
  cursorSecret: stageSecret(environment.CURSOR_SECRET_ARN),
  clock: systemClock,
  ids: systemIds,
  ownUrl: environment.OWN_URL,
  kind: environment.STAGE_KIND,
  stageFlags: environment.STAGE_FLAGS,
  stage: {
    name: environment.STAGE,
    version: environment.VERSION,
    hasAlarmReceiver: environment.HAS_ALARM_RECEIVER,
  },
  keysOf: async (tenant: string) => (await keys.list(tenant)).map(({ key }) => key),
};

export const handler = httpHandler((event) => handleSetup(api, event));

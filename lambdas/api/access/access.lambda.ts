import { randomBytes } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { stageSecret } from '../../entry/secrets-stage-secret.ts';
import { systemClock, systemIds } from '../../entry/system.ts';
import { DynamoLiveStore } from '../../live/dynamo-live-store.ts';
import { DynamoDefinitions } from '../../pipeline/dynamo-definitions.ts';
import { DynamoApiKeys } from '../authorizer/dynamo-api-keys.ts';
import { AccessEnvironment } from '../environment.ts';
import { handleAccess } from './access.ts';

const { RUN_TABLE, CURSOR_SECRET_ARN, LIVE_URL } = readEnvironment(AccessEnvironment);
const dynamo = new DynamoDBClient();

const api = {
  keys: new DynamoApiKeys(dynamo, RUN_TABLE),
  definitions: new DynamoDefinitions(dynamo, RUN_TABLE),
  cursorSecret: stageSecret(CURSOR_SECRET_ARN),
  clock: systemClock,
  ids: systemIds,
  live: new DynamoLiveStore(dynamo, RUN_TABLE, systemClock),
  liveUrl: LIVE_URL,
  newTicket: () => randomBytes(32).toString('base64url'),
  // The prefix lets secret scanners find keys that were published by accident.
  newApiKey: () => `csk_${randomBytes(32).toString('base64url')}`,
};

export const handler = httpHandler((event) => handleAccess(api, event));

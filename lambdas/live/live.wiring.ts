import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { systemClock } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { AwsSockets } from './aws-sockets.ts';
import { DynamoLiveStore } from './dynamo-live-store.ts';
import { LiveEnvironment } from './environment.ts';

export function wireLive() {
  const { RUN_TABLE, LIVE_CALLBACK_URL } = readEnvironment(LiveEnvironment);
  const dynamo = new DynamoDBClient();
  const definitions = new DynamoDefinitions(dynamo, RUN_TABLE);
  return {
    table: RUN_TABLE,
    dynamo,
    clock: systemClock,
    live: new DynamoLiveStore(dynamo, RUN_TABLE, systemClock),
    sockets: new AwsSockets(readEnvironment(AwsEnvironment), LIVE_CALLBACK_URL),
    isPerson: async (tenant: string, person: string) => (await definitions.person(tenant, person)) !== undefined,
  };
}

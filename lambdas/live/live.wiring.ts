import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { Cached } from '../entry/cached.ts';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { systemClock } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { AwsSockets } from './aws-sockets.ts';
import { DynamoLiveStore } from './dynamo-live-store.ts';
import { LiveEnvironment } from './environment.ts';

/** A removed person receives events for this time at most. */
const PERSON_CACHED_MS = 30_000;

export function wireLive() {
  const { RUN_TABLE, LIVE_CALLBACK_URL } = readEnvironment(LiveEnvironment);
  const dynamo = new DynamoDBClient();
  const definitions = new DynamoDefinitions(dynamo, RUN_TABLE);
  const people = new Cached<boolean>(PERSON_CACHED_MS, systemClock.now);
  return {
    table: RUN_TABLE,
    dynamo,
    clock: systemClock,
    live: new DynamoLiveStore(dynamo, RUN_TABLE, systemClock),
    sockets: new AwsSockets(readEnvironment(AwsEnvironment), LIVE_CALLBACK_URL),
    isPerson: (tenant: string, person: string) =>
      people.get(`${tenant}#${person}`, async () => (await definitions.person(tenant, person)) !== undefined),
  };
}

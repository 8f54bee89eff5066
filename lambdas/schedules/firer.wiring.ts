import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { readEnvironment } from '../entry/environment.ts';
import { StarterEnvironment } from '../intake/environment.ts';
import { wireStarter } from '../intake/starter.wiring.ts';
import { DynamoScheduleStore } from './dynamo-schedule-store.ts';

export function wireFirer() {
  const { RUN_TABLE } = readEnvironment(StarterEnvironment);
  return { ...wireStarter(), schedules: new DynamoScheduleStore(new DynamoDBClient(), RUN_TABLE) };
}

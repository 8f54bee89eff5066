import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { readEnvironment } from '../entry/environment.ts';
import { systemClock, systemIds, systemLog, systemPause } from '../entry/system.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import { SqsStepQueue } from '../run-changes/sqs-step-queue.ts';
import { wireTelemetry } from '../telemetry/telemetry.wiring.ts';
import { wireExpressions } from '../workflow/expressions/expressions.wiring.ts';
import { StarterEnvironment } from './environment.ts';

/** Definitions are not cached: a person who has just enabled an automation may start it. */
export function wireStarter() {
  const environment = readEnvironment(StarterEnvironment);
  const { RUN_TABLE, STEP_QUEUE_URL } = environment;
  const dynamo = new DynamoDBClient();
  return {
    runs: new DynamoRunStore(dynamo, RUN_TABLE, systemPause, systemClock),
    definitions: new DynamoDefinitions(dynamo, RUN_TABLE),
    queue: new SqsStepQueue(new SQSClient(), STEP_QUEUE_URL),
    expressions: wireExpressions(),
    clock: systemClock,
    ids: systemIds,
    log: systemLog,
    telemetry: wireTelemetry(environment),
  };
}

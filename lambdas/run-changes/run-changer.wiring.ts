import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SFNClient } from '@aws-sdk/client-sfn';
import { SQSClient } from '@aws-sdk/client-sqs';
import type * as z from 'zod';
import { AwsEnvironment, readEnvironment } from '../entry/environment.ts';
import { invokedIn } from '../entry/invoke-function.ts';
import { systemClock, systemLog, systemPause } from '../entry/system.ts';
import { AwsOutbox } from '../outbox/aws-outbox.ts';
import { CachedDefinitions } from '../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import type { FlagValues } from '../run/settings/flags.ts';
import { wireTelemetry } from '../telemetry/telemetry.wiring.ts';
import { RunChangerEnvironment } from './environment.ts';
import { SqsStepQueue } from './sqs-step-queue.ts';

/**
 * A function that never ends a run, or never requests an approval, has no destination for those outbox entries. One that
 * starts no step needs no flags.
 */
type Destinations = Omit<z.infer<typeof RunChangerEnvironment>, 'SEAL_QUEUE_URL' | 'STAGE_FLAGS'> & {
  SEAL_QUEUE_URL?: string;
  STAGE_FLAGS?: FlagValues;
  APPROVAL_MACHINE_ARN?: string;
  ANNOUNCE_FUNCTION?: string;
};

/** Creates the ports of every function that changes runs, once per function instance. */
export function wireRunChanger(environment: Destinations = readEnvironment(RunChangerEnvironment)) {
  const dynamo = new DynamoDBClient();
  const sqs = new SQSClient();
  const { ANNOUNCE_FUNCTION: announce } = environment;
  const stored = new DynamoDefinitions(dynamo, environment.RUN_TABLE);
  return {
    dynamo,
    runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
    stored,
    definitions: new CachedDefinitions(stored, systemClock.now, environment.STAGE_FLAGS),
    queue: new SqsStepQueue(sqs, environment.STEP_QUEUE_URL),
    outbox: new AwsOutbox(
      sqs,
      new SFNClient(),
      {
        sealQueueUrl: environment.SEAL_QUEUE_URL,
        approvalQueueUrl: environment.APPROVAL_QUEUE_URL,
        approvalMachineArn: environment.APPROVAL_MACHINE_ARN,
        ...(announce && { announceFunction: invokedIn(readEnvironment(AwsEnvironment), announce) }),
      },
      systemClock,
    ),
    clock: systemClock,
    log: systemLog,
    telemetry: wireTelemetry(environment),
  };
}

import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { SQSClient } from '@aws-sdk/client-sqs';
import { readEnvironment } from '../entry/environment.ts';
import { systemClock, systemIds, systemLog, systemPause } from '../entry/system.ts';
import { secretNames } from '../entry/tenant-secrets.ts';
import { CachedDefinitions } from '../pipeline/cached-definitions.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { DynamoRunStore } from '../run/dynamo/dynamo-run-store.ts';
import { SqsStepQueue } from '../run-changes/sqs-step-queue.ts';
import { wireTelemetry } from '../telemetry/telemetry.wiring.ts';
import { wireExpressions } from '../workflow/expressions/expressions.wiring.ts';
import { IntakeEnvironment } from './environment.ts';
import { SecretsSigningSecrets } from './secrets-signing-secrets.ts';

export function wireIntake() {
  const environment = readEnvironment(IntakeEnvironment);
  const dynamo = new DynamoDBClient();
  return {
    runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause, systemClock),
    definitions: new CachedDefinitions(new DynamoDefinitions(dynamo, environment.RUN_TABLE), systemClock.now),
    queue: new SqsStepQueue(new SQSClient(), environment.STEP_QUEUE_URL),
    secrets: new SecretsSigningSecrets(
      new SecretsManagerClient(),
      secretNames(environment, 'webhook-signing'),
      systemClock.now,
      systemLog,
    ),
    expressions: wireExpressions(),
    clock: systemClock,
    ids: systemIds,
    log: systemLog,
    telemetry: wireTelemetry(environment),
  };
}

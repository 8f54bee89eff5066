import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { SFNClient } from '@aws-sdk/client-sfn';
import { SQSClient } from '@aws-sdk/client-sqs';
import { SecretsConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { systemClock, systemEvery, systemIds, systemLog, systemPause } from '../entry/system.ts';
import { AwsOutbox } from '../outbox/aws-outbox.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { KeptDefinitions } from '../pipeline/kept-definitions.ts';
import { DynamoRunStore } from '../run/dynamo-run-store.ts';
import { WorkerEnvironment } from './environment.ts';
import { SqsStepQueue } from './sqs-step-queue.ts';
import type { Worker } from './worker.ts';

/** What everything that moves runs is built from, made once per function instance. */
export function workerPorts(): Omit<Worker, 'hasTime'> {
  const environment = readEnvironment(WorkerEnvironment);
  const dynamo = new DynamoDBClient();
  const sqs = new SQSClient();
  const definitions = new DynamoDefinitions(dynamo, environment.RUN_TABLE);
  return {
    runs: new DynamoRunStore(dynamo, environment.RUN_TABLE, systemPause),
    definitions: new KeptDefinitions(definitions, systemClock.now),
    connections: new SecretsConnections(
      new SecretsManagerClient(),
      definitions,
      environment.CONNECTION_SECRET_ARNS,
      systemClock.now,
    ),
    queue: new SqsStepQueue(sqs, environment.STEP_QUEUE_URL),
    outbox: new AwsOutbox(sqs, new SFNClient(), {
      sealQueueUrl: environment.SEAL_QUEUE_URL,
      approvalMachineArn: environment.APPROVAL_MACHINE_ARN,
    }),
    clock: systemClock,
    ids: systemIds,
    random: systemPause.random,
    every: systemEvery,
    log: systemLog,
  };
}

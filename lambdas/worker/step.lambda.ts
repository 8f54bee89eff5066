import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { SFNClient } from '@aws-sdk/client-sfn';
import { SQSClient } from '@aws-sdk/client-sqs';
import middy from '@middy/core';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import * as z from 'zod';
import { EXCHANGE_TIMEOUT_MS } from '../connectors/http-exchange.ts';
import { SecretsConnections } from '../connectors/secrets-connections.ts';
import { readEnvironment } from '../entry/environment.ts';
import { workThrough } from '../entry/sqs-batch.ts';
import { systemClock, systemIds, systemLog, systemPause } from '../entry/system.ts';
import { AwsOutbox } from '../outbox/aws-outbox.ts';
import { DynamoDefinitions } from '../pipeline/dynamo-definitions.ts';
import { KeptDefinitions } from '../pipeline/kept-definitions.ts';
import { DynamoRunStore } from '../run/dynamo-run-store.ts';
import { advanceRun } from './advance-run.ts';
import { WorkerEnvironment } from './environment.ts';
import { SqsStepQueue } from './sqs-step-queue.ts';

/** A step may read, write and commit: two exchanges with the target and some seconds for the commit. */
const TIME_FOR_A_STEP_MS = 2 * EXCHANGE_TIMEOUT_MS + 3_000;

const StepMessage = z.object({ tenant: z.string(), runId: z.string() });

const environment = readEnvironment(WorkerEnvironment);
const dynamo = new DynamoDBClient();
const sqs = new SQSClient();
const definitions = new DynamoDefinitions(dynamo, environment.RUN_TABLE);

const ports = {
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
  random: Math.random,
  log: systemLog,
};

export const handler = middy<SQSEvent, SQSBatchResponse>().handler((event: SQSEvent, context: Context) => {
  const hasTime = () => context.getRemainingTimeInMillis() > TIME_FOR_A_STEP_MS;
  return workThrough(event, StepMessage, (message) => advanceRun({ ...ports, hasTime }, message), systemLog);
});

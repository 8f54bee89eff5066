import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SFNClient } from '@aws-sdk/client-sfn';
import { SQSClient } from '@aws-sdk/client-sqs';
import middy from '@middy/core';
import { readEnvironment } from '../entry/environment.ts';
import { systemClock, systemLog, systemPause } from '../entry/system.ts';
import { AwsOutbox } from '../outbox/aws-outbox.ts';
import { DynamoRunStore } from '../run/dynamo-run-store.ts';
import { SqsStepQueue } from '../worker/sqs-step-queue.ts';
import { SweepEnvironment } from './environment.ts';
import { type Swept, sweep } from './sweep.ts';

const environment = readEnvironment(SweepEnvironment);
const sqs = new SQSClient();

const sweeper = {
  runs: new DynamoRunStore(new DynamoDBClient(), environment.RUN_TABLE, systemPause),
  queue: new SqsStepQueue(sqs, environment.STEP_QUEUE_URL),
  outbox: new AwsOutbox(sqs, new SFNClient(), {
    sealQueueUrl: environment.SEAL_QUEUE_URL,
    approvalQueueUrl: environment.APPROVAL_QUEUE_URL,
    approvalMachineArn: environment.APPROVAL_MACHINE_ARN,
  }),
  clock: systemClock,
  log: systemLog,
};

export const handler = middy<unknown, Swept>().handler(() => sweep(sweeper));

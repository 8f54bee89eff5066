import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { systemClock, systemPause } from '../../entry/system.ts';
import { DynamoRunReads } from '../../run/dynamo/dynamo-run-reads.ts';
import { RedriveEnvironment } from '../environment.ts';
import { handleDeadLetters } from './dead-letters.ts';
import { SqsDeadLetters } from './sqs-dead-letters.ts';

const environment = readEnvironment(RedriveEnvironment);

const ports = {
  runs: new DynamoRunReads(new DynamoDBClient(), environment.RUN_TABLE, systemPause, systemClock),
  deadLetters: new SqsDeadLetters(new SQSClient(), environment.DEAD_LETTER_QUEUES, systemClock),
  clock: systemClock,
};

export const handler = httpHandler((event) => handleDeadLetters(ports, event));

import { SQSClient } from '@aws-sdk/client-sqs';
import { readEnvironment } from '../../entry/environment.ts';
import { httpHandler } from '../../entry/http.ts';
import { RedriveEnvironment } from '../environment.ts';
import { handleDeadLetters } from './dead-letters.ts';
import { SqsDeadLetters } from './sqs-dead-letters.ts';

const deadLetters = new SqsDeadLetters(new SQSClient(), readEnvironment(RedriveEnvironment).DEAD_LETTER_QUEUES);

export const handler = httpHandler((event) => handleDeadLetters(deadLetters, event));

import { SQSClient } from '@aws-sdk/client-sqs';
import { readEnvironment } from '../entry/environment.ts';
import { httpHandler, json, Problem } from '../entry/http.ts';
import { assertMayControl, callerOf } from './caller.ts';
import { RedriveEnvironment } from './environment.ts';
import { SqsDeadLetters } from './sqs-dead-letters.ts';

const deadLetters = new SqsDeadLetters(new SQSClient(), readEnvironment(RedriveEnvironment).DEAD_LETTER_QUEUES);

/** `GET /api/v1/dead-letters` counts them, `POST /api/v1/dead-letters/redrive` sends them back. */
export const handler = httpHandler(async (event) => {
  assertMayControl(callerOf(event));
  const before = await deadLetters.counts();
  if (event.routeKey === 'GET /api/v1/dead-letters') return json(200, { queues: before });
  if (event.routeKey !== 'POST /api/v1/dead-letters/redrive') {
    throw new Problem(404, 'NOT_FOUND', `there is nothing at ${event.rawPath}`);
  }
  await deadLetters.redrive();
  return json(202, { redriven: before });
});

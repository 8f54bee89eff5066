import { SQSClient } from '@aws-sdk/client-sqs';
import * as z from 'zod';
import { readEnvironment } from '../entry/environment.ts';
import { functionHandler } from '../entry/middy-handler.ts';
import { SqsStepQueue } from '../run-changes/sqs-step-queue.ts';
import { ExpireEnvironment } from './environment.ts';

const ExpireInput = z.object({ tenant: z.string(), runId: z.string() });

const queue = new SqsStepQueue(new SQSClient(), readEnvironment(ExpireEnvironment).STEP_QUEUE_URL);

/** When the time of an approval is up, a worker expires it if it is still open in DynamoDB. */
export const handler = functionHandler<unknown, void>().handler(async (event: unknown) => {
  await queue.send(ExpireInput.parse(event));
});

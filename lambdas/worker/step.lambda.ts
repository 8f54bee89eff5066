import middy from '@middy/core';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import * as z from 'zod';
import { EXCHANGE_TIMEOUT_MS } from '../connectors/http-exchange.ts';
import { workThrough } from '../entry/sqs-batch.ts';
import { systemLog } from '../entry/system.ts';
import { advanceRun } from './advance-run.ts';
import { workerPorts } from './worker-ports.ts';

/** A step may read, write and commit: two exchanges with the target and some seconds for the commit. */
const TIME_FOR_A_STEP_MS = 2 * EXCHANGE_TIMEOUT_MS + 3_000;

const StepMessage = z.object({ tenant: z.string(), runId: z.string() });

const worker = workerPorts();

export const handler = middy<SQSEvent, SQSBatchResponse>().handler((event: SQSEvent, context: Context) => {
  const hasTime = () => context.getRemainingTimeInMillis() > TIME_FOR_A_STEP_MS;
  return workThrough(event, StepMessage, (message) => advanceRun({ ...worker, hasTime }, message), systemLog);
});

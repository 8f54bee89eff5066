import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import * as z from 'zod';
import { functionHandler } from '../entry/middy-handler.ts';
import { processBatch } from '../entry/sqs-batch.ts';
import { systemLog } from '../entry/system.ts';
import { processRun } from './process-run.ts';
import { wireWorker } from './worker.wiring.ts';

const StepMessage = z.object({
  tenant: z.string(),
  runId: z.string(),
  passedOver: z.array(z.string()).optional(),
  endSession: z
    .intersection(
      z.object({ sessionId: z.string(), traceparent: z.string() }),
      z.union([z.object({ url: z.string(), connection: z.string() }), z.object({ canceledBy: z.string() })]),
    )
    .optional()
    // Earlier versions sent the index of the step. Such a message only wakes the run.
    .catch(undefined),
  watches: z.object({ stepIndex: z.int(), leaseVersion: z.int() }).optional(),
});

const worker = wireWorker();

export const handler = functionHandler<SQSEvent, SQSBatchResponse>().handler((event: SQSEvent, context: Context) => {
  const timeLeftMs = () => context.getRemainingTimeInMillis();
  return processBatch(event, StepMessage, (message) => processRun({ ...worker, timeLeftMs }, message), systemLog);
});

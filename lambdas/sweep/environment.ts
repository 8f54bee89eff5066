import * as z from 'zod';

export const SweepEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  SEAL_QUEUE_URL: z.string(),
  APPROVAL_QUEUE_URL: z.string(),
  APPROVAL_MACHINE_ARN: z.string(),
});

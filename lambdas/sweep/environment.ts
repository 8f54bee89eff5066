import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';

export const SweepEnvironment = z.object({
  ...StageEnvironment,
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  SEAL_QUEUE_URL: z.string(),
  APPROVAL_QUEUE_URL: z.string(),
  APPROVAL_MACHINE_ARN: z.string(),
});

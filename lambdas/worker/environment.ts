import * as z from 'zod';
import { ArnsByTenant } from '../entry/environment.ts';

export const WorkerEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  SEAL_QUEUE_URL: z.string(),
  APPROVAL_MACHINE_ARN: z.string(),
  CONNECTION_SECRET_ARNS: ArnsByTenant,
});

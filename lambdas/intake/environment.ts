import * as z from 'zod';
import { ArnsByTenant } from '../entry/environment.ts';

export const IntakeEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  WEBHOOK_SECRET_ARNS: ArnsByTenant,
});

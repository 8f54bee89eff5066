import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';

export const PlanEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  ...StageEnvironment,
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
});

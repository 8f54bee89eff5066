import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';

/** What everything that moves runs needs. */
export const MoverEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  SEAL_QUEUE_URL: z.string(),
  APPROVAL_QUEUE_URL: z.string(),
});

export const WorkerEnvironment = MoverEnvironment.extend({
  APPROVAL_MACHINE_ARN: z.string(),
  ...StageEnvironment,
  /** Where this stage itself answers: the one place on its own machine that `http.request` may reach, if it is listed. */
  OWN_URL: z.url(),
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
});

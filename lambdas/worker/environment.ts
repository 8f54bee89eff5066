import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';
import { RunChangerEnvironment } from '../run-changes/environment.ts';

export const WorkerEnvironment = RunChangerEnvironment.extend({
  APPROVAL_MACHINE_ARN: z.string(),
  ...StageEnvironment,
  /** The URL of this stage's own API: the only address on its own machine that `http.request` may call, if it is listed. */
  OWN_URL: z.url(),
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
});

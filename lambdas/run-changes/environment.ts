import * as z from 'zod';
import { TelemetryEnvironment } from '../telemetry/environment.ts';

/** The environment of every function that changes runs. */
export const RunChangerEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  SEAL_QUEUE_URL: z.string(),
  APPROVAL_QUEUE_URL: z.string(),
  ...TelemetryEnvironment,
});

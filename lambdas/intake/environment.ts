import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';
import { TelemetryEnvironment } from '../telemetry/environment.ts';

/** Of the functions that start runs. */
export const StarterEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  ...TelemetryEnvironment,
});

export const IntakeEnvironment = StarterEnvironment.extend({ ...StageEnvironment });

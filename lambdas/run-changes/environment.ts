import * as z from 'zod';
import { StageFlags } from '../run/settings/flags-schema.ts';
import { TelemetryEnvironment } from '../telemetry/environment.ts';

/** The environment of every function that changes runs. */
export const RunChangerEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  SEAL_QUEUE_URL: z.string(),
  APPROVAL_QUEUE_URL: z.string(),
  /** The flags that the stage sets, under those of its tenants. */
  STAGE_FLAGS: StageFlags,
  ...TelemetryEnvironment,
});

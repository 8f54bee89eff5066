import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';
import { StageFlags } from '../run/settings/flags-schema.ts';
import { TelemetryEnvironment } from '../telemetry/environment.ts';

export const SweepEnvironment = z.object({
  ...StageEnvironment,
  ...TelemetryEnvironment,
  RUN_TABLE: z.string(),
  STAGE_FLAGS: StageFlags,
  /** The stage has the live feed, whose connections are counted. */
  LIVE_FEED: z.enum(['true', 'false']),
  STEP_QUEUE_URL: z.string(),
  SEAL_QUEUE_URL: z.string(),
  APPROVAL_QUEUE_URL: z.string(),
  APPROVAL_MACHINE_ARN: z.string(),
});

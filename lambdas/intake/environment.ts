import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';

/** Of the functions that start runs. */
export const StarterEnvironment = z.object({ RUN_TABLE: z.string(), STEP_QUEUE_URL: z.string() });

export const IntakeEnvironment = StarterEnvironment.extend({ ...StageEnvironment });

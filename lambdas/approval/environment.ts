import * as z from 'zod';

export const HoldEnvironment = z.object({ RUN_TABLE: z.string() });

export const ExpireEnvironment = z.object({ STEP_QUEUE_URL: z.string() });

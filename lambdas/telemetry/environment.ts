import * as z from 'zod';

/** Variables of every function that records metrics. */
export const TelemetryEnvironment = { STAGE: z.string(), STAGE_KIND: z.enum(['prod', 'staging', 'dev']) };

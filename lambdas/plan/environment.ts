import * as z from 'zod';
import { ArnsByTenant } from '../entry/environment.ts';

export const PlanEnvironment = z.object({
  RUN_TABLE: z.string(),
  /** Credentials that cannot write; the others are out of a plan's reach. */
  PLAN_SECRET_ARNS: ArnsByTenant,
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
});

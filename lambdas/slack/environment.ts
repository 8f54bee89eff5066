import * as z from 'zod';
import { ArnsByTenant } from '../entry/environment.ts';
import { MoverEnvironment } from '../worker/environment.ts';

/** What it takes to know who is speaking. */
export const SlackDoorEnvironment = z.object({ RUN_TABLE: z.string(), WEBHOOK_SECRET_ARNS: ArnsByTenant });

export const InteractivityEnvironment = MoverEnvironment.extend({
  WEBHOOK_SECRET_ARNS: ArnsByTenant,
  MESSAGING_SECRET_ARNS: ArnsByTenant,
});

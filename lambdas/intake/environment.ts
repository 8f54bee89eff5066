import * as z from 'zod';
import { TenantSecretsEnvironment } from '../entry/tenant-secrets.ts';

export const IntakeEnvironment = z.object({
  RUN_TABLE: z.string(),
  STEP_QUEUE_URL: z.string(),
  ...TenantSecretsEnvironment,
});

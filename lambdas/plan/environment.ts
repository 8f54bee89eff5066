import * as z from 'zod';
import { TenantSecretsEnvironment } from '../entry/tenant-secrets.ts';

export const PlanEnvironment = z.object({
  RUN_TABLE: z.string(),
  ...TenantSecretsEnvironment,
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
});

import * as z from 'zod';
import { TenantSecretsEnvironment } from '../entry/tenant-secrets.ts';
import { MoverEnvironment } from '../worker/environment.ts';

/** What it takes to know who is speaking. */
export const SlackDoorEnvironment = z.object({ RUN_TABLE: z.string(), ...TenantSecretsEnvironment });

export const InteractivityEnvironment = MoverEnvironment.extend(TenantSecretsEnvironment);

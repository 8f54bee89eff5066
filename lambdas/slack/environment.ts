import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';
import { MoverEnvironment } from '../worker/environment.ts';

/** What it takes to know who is speaking. */
export const SlackEnvironment = z.object({ RUN_TABLE: z.string(), ...StageEnvironment });

export const InteractivityEnvironment = MoverEnvironment.extend(StageEnvironment);

import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';
import { RunChangerEnvironment } from '../run-changes/environment.ts';

export const SlackEnvironment = z.object({ RUN_TABLE: z.string(), ...StageEnvironment });

export const InteractivityEnvironment = RunChangerEnvironment.extend(StageEnvironment);

import * as z from 'zod';
import { StageEnvironment } from '../entry/tenant-secrets.ts';

export const CredentialsEnvironment = z.object({ RUN_TABLE: z.string(), OWN_URL: z.url(), ...StageEnvironment });

export const BootstrapEnvironment = z.object({
  RUN_TABLE: z.string(),
  OWN_URL: z.url(),
  STAGE_KIND: z.enum(['prod', 'staging', 'dev']),
  ...StageEnvironment,
});

/** The names of the functions that operators invoke with their own AWS credentials. */
export const bootstrapFunctionName = (stage: string): string => `countersign-${stage}-bootstrap`;
export const credentialsFunctionName = (stage: string): string => `countersign-${stage}-credentials`;

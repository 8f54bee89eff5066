import * as z from 'zod';

export const SealEnvironment = z.object({
  RUN_TABLE: z.string(),
  EVIDENCE_BUCKET: z.string(),
  SIGNING_KEY_ARN: z.string(),
});

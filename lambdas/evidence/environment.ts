import * as z from 'zod';
import { TelemetryEnvironment } from '../telemetry/environment.ts';

/** Ed25519 signatures are deterministic. ECDSA P-256 is for regions without Ed25519. */
export const SigningAlgorithm = z.enum(['ED25519_SHA_512', 'ECDSA_SHA_256']).default('ED25519_SHA_512');
export type SigningAlgorithm = z.infer<typeof SigningAlgorithm>;

const json = <Schema extends z.ZodType>(schema: Schema) =>
  z.string().transform((text) => schema.parse(JSON.parse(text)));

/** JSON: the keys that evidence is or was signed with, oldest first. */
export const EVIDENCE_KEYS = json(z.array(z.object({ keyId: z.string(), validUntil: z.string().nullable() })));

const SigningEnvironment = z.object({
  RUN_TABLE: z.string(),
  EVIDENCE_BUCKET: z.string(),
  SIGNING_KEY_ARN: z.string(),
  SIGNING_ALGORITHM: SigningAlgorithm,
  EVIDENCE_KEYS,
});

export const SealEnvironment = SigningEnvironment.extend({
  ...TelemetryEnvironment,
  /** Where traces are sent, and the secret with headers for it; absent in a stage without traces. */
  TRACES_URL: z.url().optional(),
  TRACES_SECRET_ARN: z.string().optional(),
  EXPORT_BUCKET: z.string(),
  /** Encrypts the artifacts, which contain values. */
  VALUES_KEY_ARN: z.string(),
  /** How long the rows of a sealed run are retained; by default for ever. */
  FINISHED_RUN_RETENTION_DAYS: z.coerce.number().int().min(1).optional(),
  /** JSON: exports of a finished run in addition to its evidence. */
  EXPORTS: json(z.array(z.enum(['siem', 'artifacts']))),
});

export const DailyLogEnvironment = SigningEnvironment.extend({
  /** JSON: the tenants whose days are closed. */
  TENANTS: json(z.array(z.string())),
});

export const KeysEnvironment = z.object({ EVIDENCE_KEYS });

export const EvidenceApiEnvironment = z.object({
  RUN_TABLE: z.string(),
  EVIDENCE_BUCKET: z.string(),
  EXPORT_BUCKET: z.string(),
});

/**
 * For the function that closes days: V8 collects new objects only after up to 100 MB. With this option a day of 200,000
 * entries needs 320 MB instead of 520 MB, and the function has 512 MB.
 */
export const SMALL_YOUNG_GENERATION = '--max-semi-space-size=4';

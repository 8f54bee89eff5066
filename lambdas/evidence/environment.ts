import * as z from 'zod';

/** Ed25519 signs the same message the same way every time; ECDSA P-256 is for regions that do not offer it. */
const SIGNING_ALGORITHMS = ['ED25519_SHA_512', 'ECDSA_SHA_256'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

const json = <Schema extends z.ZodType>(schema: Schema) =>
  z.string().transform((text) => schema.parse(JSON.parse(text)));

/** JSON: the keys that evidence is or was signed with, oldest first. */
const EVIDENCE_KEYS = json(z.array(z.object({ keyId: z.string(), validUntil: z.string().nullable() })));

const SigningEnvironment = z.object({
  RUN_TABLE: z.string(),
  EVIDENCE_BUCKET: z.string(),
  SIGNING_KEY_ARN: z.string(),
  SIGNING_ALGORITHM: z.enum(SIGNING_ALGORITHMS).default('ED25519_SHA_512'),
  EVIDENCE_KEYS,
});

export const SealEnvironment = SigningEnvironment.extend({
  STAGE: z.string(),
  EXPORT_BUCKET: z.string(),
  /** How long the rows of a sealed run are kept; unset, for ever. */
  FINISHED_RUN_RETENTION_DAYS: z.coerce.number().int().min(1).optional(),
  /** JSON: what is written of a finished run beside its evidence. */
  EXPORTS: json(z.array(z.enum(['siem', 'artifacts']))),
});

export const DailyLogEnvironment = SigningEnvironment.extend({
  /** JSON: whose days are closed. */
  TENANTS: json(z.array(z.string())),
});

export const KeysEnvironment = z.object({ EVIDENCE_KEYS });

export const EvidenceApiEnvironment = z.object({ RUN_TABLE: z.string(), EVIDENCE_BUCKET: z.string() });

/**
 * For the function that closes days: V8 lets new objects take up to 100 MB before it looks which of them are still needed.
 * With this a day of 200,000 entries takes 320 MB instead of 520, and the function has 512.
 */
export const SMALL_YOUNG_GENERATION = '--max-semi-space-size=4';

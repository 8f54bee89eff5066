import * as z from 'zod';

/** The purpose of a tenant's secret, and the last part of its name. */
export type SecretPurpose = 'webhook-signing' | 'connections' | 'messaging' | 'plan-connections';

/**
 * Variables of functions that serve all tenants of the stage. Lambda allows 4 KB for all variables: 20 tenant names fit,
 * 20 secret ARNs do not, so functions derive secret names from stage and tenant.
 */
export const StageEnvironment = {
  STAGE: z.string(),
  /** Separated by commas. Unknown tenants are recognised without a request to AWS. */
  TENANTS: z.string().transform((names) => names.split(',')),
};

export const secretName = (stage: string, tenant: string, purpose: SecretPurpose) =>
  `countersign/${stage}/${tenant}/${purpose}`;

/** The name of each tenant's secret, by tenant. */
export function secretNames(
  { STAGE, TENANTS }: { STAGE: string; TENANTS: readonly string[] },
  purpose: SecretPurpose,
): Record<string, string> {
  return Object.fromEntries(TENANTS.map((tenant) => [tenant, secretName(STAGE, tenant, purpose)]));
}

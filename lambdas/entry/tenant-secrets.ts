import * as z from 'zod';

/** What a secret of a tenant is for: the last part of its name. */
export type SecretPurpose = 'webhook-signing' | 'connections' | 'messaging' | 'plan-connections';

/**
 * In the environment of functions that work for all tenants of the stage. Lambda allows 4 KB for all variables together: 20
 * names of tenants fit, 20 ARNs of secrets do not. So the names of the secrets are derived from stage and tenant.
 */
export const StageEnvironment = {
  STAGE: z.string(),
  /** Joined by commas. An unknown tenant is recognised without a request to AWS. */
  TENANTS: z.string().transform((names) => names.split(',')),
};

export const secretName = (stage: string, tenant: string, purpose: SecretPurpose) =>
  `countersign/${stage}/${tenant}/${purpose}`;

/** Tenant → name of its secret. */
export function secretNames(
  { STAGE, TENANTS }: { STAGE: string; TENANTS: readonly string[] },
  purpose: SecretPurpose,
): Record<string, string> {
  return Object.fromEntries(TENANTS.map((tenant) => [tenant, secretName(STAGE, tenant, purpose)]));
}

import * as z from 'zod';
import type { SigningSource } from './signing-secret.ts';

/** The secrets a tenant's sender may sign with: none for an unknown tenant, two while one is being rotated. */
export interface SigningSecrets {
  secretsFor(tenant: string, source: SigningSource): Promise<readonly string[]>;
}

/** One document per tenant: `{"github": ["current", "previous"], "servicenow": ["..."]}`. */
export const SecretDocument = z.record(
  z.string(),
  z.union([z.string().transform((one) => [one]), z.array(z.string())]),
);

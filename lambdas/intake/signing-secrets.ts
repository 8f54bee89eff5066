import type { TriggerSource } from '../run/run.ts';

/** The secrets a tenant's sender may sign with: none for an unknown tenant, two while one is being rotated. */
export interface SigningSecrets {
  secretsFor(tenant: string, source: TriggerSource | 'slack'): Promise<readonly string[]>;
}

import type { SigningSecrets } from '../../lambdas/intake/signing-secrets.ts';
import type { TriggerSource } from '../../lambdas/run/run.ts';

export type SecretsByTenant = Record<string, Record<string, string | string[]>>;

export class MemorySigningSecrets implements SigningSecrets {
  readonly #byTenant: Map<string, Record<string, string | string[]>>;

  constructor(byTenant: SecretsByTenant) {
    this.#byTenant = new Map(Object.entries(byTenant));
  }

  async secretsFor(tenant: string, source: TriggerSource | 'slack'): Promise<readonly string[]> {
    return [this.#byTenant.get(tenant)?.[source] ?? []].flat().filter((secret) => secret !== '');
  }

  change(tenant: string, secrets: Record<string, string | string[]>): void {
    this.#byTenant.set(tenant, secrets);
  }
}

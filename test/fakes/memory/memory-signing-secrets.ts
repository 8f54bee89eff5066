import { checkSecrets, type SigningSecrets, type SigningSource } from '../../../lambdas/intake/signing-secrets.ts';

export type SecretsByTenant = Record<string, Record<string, string | string[]>>;

export class MemorySigningSecrets implements SigningSecrets {
  readonly #byTenant: Map<string, Record<string, string | string[]>>;

  constructor(byTenant: SecretsByTenant) {
    this.#byTenant = new Map(Object.entries(byTenant));
  }

  async secretsFor(tenant: string, source: SigningSource): Promise<readonly string[]> {
    const secrets = [this.#byTenant.get(tenant)?.[source] ?? []].flat();
    return checkSecrets({ [source]: secrets }).usable[source] ?? [];
  }

  change(tenant: string, secrets: Record<string, string | string[]>): void {
    this.#byTenant.set(tenant, secrets);
  }
}

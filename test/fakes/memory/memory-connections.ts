import type { Connections } from '../../../lambdas/connectors/connections.ts';
import type { Access } from '../../../lambdas/connectors/connector.ts';
import { CountersignError } from '../../../lambdas/run/errors.ts';

/** Connections by tenant and name, credentials included. */
export class MemoryConnections implements Connections {
  readonly #byTenant: Record<string, Record<string, Access>>;

  constructor(byTenant: Record<string, Record<string, Access>>) {
    this.#byTenant = byTenant;
  }

  async open(tenant: string, name: string): Promise<Access> {
    const access = this.#byTenant[tenant]?.[name];
    if (!access || access.credential === undefined) {
      throw new CountersignError('CONNECTION_MISSING', `${tenant} has no connection "${name}"; define it first`);
    }
    return structuredClone(access);
  }
}

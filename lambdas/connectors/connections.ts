import type { Access } from './connector.ts';

/** Opens a tenant's connection by name; a missing one is CONNECTION_MISSING, with what to do about it. */
export interface Connections {
  open(tenant: string, name: string): Promise<Access>;
}

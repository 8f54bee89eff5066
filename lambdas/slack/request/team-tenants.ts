import { Cached } from '../../entry/cached.ts';
import type { Definitions } from '../../pipeline/definitions.ts';

/** A new connection of a workspace takes effect within this time. */
const CONNECTIONS_CACHED_MS = 60_000;

/** Finds the tenants of a Slack workspace: their `slack` connection has the workspace as its instance. */
export class TeamTenants {
  readonly tenants: readonly string[];
  readonly #definitions: Pick<Definitions, 'connection'>;
  readonly #teams: Cached<string | undefined>;

  constructor(tenants: readonly string[], definitions: Pick<Definitions, 'connection'>, now: () => number) {
    this.tenants = tenants;
    this.#definitions = definitions;
    this.#teams = new Cached(CONNECTIONS_CACHED_MS, now);
  }

  async of(team: string): Promise<string[]> {
    const teams = await Promise.all(this.tenants.map((tenant) => this.#teamOf(tenant)));
    return this.tenants.filter((_tenant, index) => teams[index] === team);
  }

  #teamOf(tenant: string): Promise<string | undefined> {
    return this.#teams.get(tenant, async () => (await this.#definitions.connection(tenant, 'slack'))?.instance);
  }
}

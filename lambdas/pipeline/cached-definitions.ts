import type { ProfileDefinition } from '../agents/profiles.ts';
import { Cached } from '../entry/cached.ts';
import type { Person } from '../people/people.ts';
import type { TenantSettings } from '../run/settings/caps.ts';
import { type FlagValues, withStageFlags } from '../run/settings/flags.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { StoredConfiguration } from './configuration.ts';
import type { Automation, Definitions } from './definitions.ts';
import type { GenericSource } from './generic-source.ts';

/** A changed automation, configuration or setting takes effect within this time. */
export const CHANGES_SEEN_WITHIN_MS = 60_000;

/** Only failed reads are not cached. */
class Missing extends Error {}

type CachedKinds = 'automations' | 'sources' | 'settings' | 'workflow' | 'people' | 'profiles' | 'configuration';

/** Definitions cached in a warm function. Workflow versions are cached for ever, because they never change. */
export class CachedDefinitions implements Pick<Definitions, CachedKinds> {
  readonly #source: Pick<Definitions, CachedKinds>;
  readonly #stageFlags: FlagValues;
  readonly #automations: Cached<Automation[]>;
  readonly #sources: Cached<GenericSource[]>;
  readonly #settings: Cached<TenantSettings>;
  readonly #people: Cached<Person[]>;
  readonly #configurations: Cached<StoredConfiguration>;
  readonly #workflows = new Map<string, PublishedWorkflow>();

  /** `stageFlags`: the flags that the stage sets, under those of its tenants. */
  constructor(source: Pick<Definitions, CachedKinds>, now: () => number, stageFlags: FlagValues = {}) {
    this.#source = source;
    this.#stageFlags = stageFlags;
    this.#automations = new Cached(CHANGES_SEEN_WITHIN_MS, now);
    this.#sources = new Cached(CHANGES_SEEN_WITHIN_MS, now);
    this.#settings = new Cached(CHANGES_SEEN_WITHIN_MS, now);
    this.#people = new Cached(CHANGES_SEEN_WITHIN_MS, now);
    this.#configurations = new Cached(CHANGES_SEEN_WITHIN_MS, now);
  }

  automations(tenant: string): Promise<Automation[]> {
    return this.#automations.get(tenant, () => this.#source.automations(tenant));
  }

  sources(tenant: string): Promise<GenericSource[]> {
    return this.#sources.get(tenant, () => this.#source.sources(tenant));
  }

  settings(tenant: string): Promise<TenantSettings> {
    return this.#settings.get(tenant, async () =>
      withStageFlags(await this.#source.settings(tenant), this.#stageFlags),
    );
  }

  /** Not cached: a command that was just forbidden does not run. Only runs with commands read them. */
  profiles(tenant: string): Promise<ProfileDefinition[]> {
    return this.#source.profiles(tenant);
  }

  /** A missing one is not cached: it is used as soon as somebody creates it. */
  async configuration(tenant: string, name: string): Promise<StoredConfiguration | undefined> {
    const read = async () => {
      const found = await this.#source.configuration(tenant, name);
      if (!found) throw new Missing();
      return found;
    };
    try {
      return await this.#configurations.get(`${tenant}/${name}`, read);
    } catch (error) {
      if (error instanceof Missing) return undefined;
      throw error;
    }
  }

  people(tenant: string, { fresh } = { fresh: false }): Promise<Person[]> {
    if (fresh) return this.#source.people(tenant);
    return this.#people.get(tenant, () => this.#source.people(tenant));
  }

  async workflow(tenant: string, name: string, version: number): Promise<PublishedWorkflow | undefined> {
    const id = `${tenant}/${name}/${version}`;
    const found = this.#workflows.get(id) ?? (await this.#source.workflow(tenant, name, version));
    if (found) this.#workflows.set(id, found);
    return found;
  }
}

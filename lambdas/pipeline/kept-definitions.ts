import type { Person } from '../approval/people.ts';
import { Kept } from '../entry/kept.ts';
import type { TenantSettings } from '../run/caps.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { Automation, Definitions } from './definitions.ts';

/** A changed automation or setting takes effect within this time; a busy function asks once instead of for every event. */
export const CHANGES_SEEN_WITHIN_MS = 60_000;

type KeptKinds = 'automations' | 'settings' | 'workflow' | 'people';

/** Definitions kept in a warm function: what may change briefly, workflow versions for ever since they never change. */
export class KeptDefinitions implements Pick<Definitions, KeptKinds> {
  readonly #source: Pick<Definitions, KeptKinds>;
  readonly #automations: Kept<Automation[]>;
  readonly #settings: Kept<TenantSettings>;
  readonly #people: Kept<Person[]>;
  readonly #workflows = new Map<string, PublishedWorkflow>();

  constructor(source: Pick<Definitions, KeptKinds>, now: () => number) {
    this.#source = source;
    this.#automations = new Kept(CHANGES_SEEN_WITHIN_MS, now);
    this.#settings = new Kept(CHANGES_SEEN_WITHIN_MS, now);
    this.#people = new Kept(CHANGES_SEEN_WITHIN_MS, now);
  }

  automations(tenant: string): Promise<Automation[]> {
    return this.#automations.get(tenant, () => this.#source.automations(tenant));
  }

  settings(tenant: string): Promise<TenantSettings> {
    return this.#settings.get(tenant, () => this.#source.settings(tenant));
  }

  people(tenant: string, looking = { fresh: false }): Promise<Person[]> {
    if (looking.fresh) return this.#source.people(tenant);
    return this.#people.get(tenant, () => this.#source.people(tenant));
  }

  async workflow(tenant: string, name: string, version: number): Promise<PublishedWorkflow | undefined> {
    const id = `${tenant}/${name}/${version}`;
    const found = this.#workflows.get(id) ?? (await this.#source.workflow(tenant, name, version));
    if (found) this.#workflows.set(id, found);
    return found;
  }
}

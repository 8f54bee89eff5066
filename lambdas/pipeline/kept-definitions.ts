import { Kept } from '../entry/kept.ts';
import type { Workflow } from '../workflow/workflow.ts';
import type { Automation, Definitions } from './definitions.ts';

/** A changed automation takes effect within this time; a busy function asks once instead of for every event. */
const AUTOMATIONS_KEPT_MS = 5_000;

/** Definitions kept in a warm function: automations briefly, workflow versions for ever since they never change. */
export class KeptDefinitions implements Pick<Definitions, 'automations' | 'workflow'> {
  readonly #source: Pick<Definitions, 'automations' | 'workflow'>;
  readonly #automations: Kept<Automation[]>;
  readonly #workflows = new Map<string, Workflow>();

  constructor(source: Pick<Definitions, 'automations' | 'workflow'>, now: () => number) {
    this.#source = source;
    this.#automations = new Kept(AUTOMATIONS_KEPT_MS, now);
  }

  automations(tenant: string): Promise<Automation[]> {
    return this.#automations.get(tenant, () => this.#source.automations(tenant));
  }

  async workflow(tenant: string, name: string, version: number): Promise<Workflow | undefined> {
    const id = `${tenant}/${name}/${version}`;
    const found = this.#workflows.get(id) ?? (await this.#source.workflow(tenant, name, version));
    if (found) this.#workflows.set(id, found);
    return found;
  }
}

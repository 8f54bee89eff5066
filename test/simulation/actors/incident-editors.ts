import type { SeededRandom } from '../environment/seeded-random.ts';
import type { SimulatedTargets } from '../environment/simulated-targets.ts';

export const NEW_INCIDENT = { state: '1', category: '', assignment_group: '' };
/** The group that shapes give by name. Each lookup of the name finds another group. */
export const GROUP_BY_NAME = 'Network';
const FIELDS = ['state', 'category'] as const;

/** Other people who edit the same incidents in ServiceNow. An undo must not overwrite their changes. */
export class IncidentEditors {
  readonly #random: SeededRandom;
  readonly #targets: SimulatedTargets;
  readonly editedIncidents = new Set<string>();
  #changes = 0;

  constructor(random: SeededRandom, targets: SimulatedTargets) {
    this.#random = random;
    this.#targets = targets;
  }

  /** Sets a field of a random incident: this field, or a random one. */
  editIncident(field: string = this.#random.pick(FIELDS)): void {
    const [sysId, incident] = this.#random.pick([...this.#targets.systems.incidents]) ?? [];
    if (sysId === undefined || !incident) return;
    this.#changes += 1;
    incident.fields[field] = `theirs ${this.#changes}`;
    this.editedIncidents.add(sysId);
  }
}

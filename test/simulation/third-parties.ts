import type { SeededRandom } from './seeded-random.ts';
import type { SimulatedOutside } from './simulated-targets.ts';

export const NEW_INCIDENT = { state: '1', category: '', assignment_group: '' };
/** The group that shapes give by name. At each lookup, the name leads to another group. */
export const GROUP_BY_NAME = 'Network';
const FIELDS = ['state', 'category'] as const;

/** Others who work on the same incidents: what they change is theirs, and no undo of ours may touch it. */
export class ThirdParties {
  readonly #random: SeededRandom;
  readonly #outside: SimulatedOutside;
  readonly touched = new Set<string>();
  #changes = 0;

  constructor(random: SeededRandom, outside: SimulatedOutside) {
    this.#random = random;
    this.#outside = outside;
  }

  /** Somebody sets a field of an incident, any one unless it is said which. */
  meddle(field: string = this.#random.pick(FIELDS)): void {
    const [sysId, incident] = this.#random.pick([...this.#outside.systems.incidents]) ?? [];
    if (sysId === undefined || !incident) return;
    this.#changes += 1;
    incident.fields[field] = `theirs ${this.#changes}`;
    this.touched.add(sysId);
  }
}

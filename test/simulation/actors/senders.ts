import type { Delivery } from '../../../lambdas/intake/delivery.ts';
import { githubDelivery } from '../../../lambdas/intake/github-delivery.ts';
import { servicenowDelivery } from '../../../lambdas/intake/servicenow-delivery.ts';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import type { Functions } from '../environment/functions.ts';
import type { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';
import type { ShapeName } from '../workflow-shapes.ts';
import { REPORTER } from './simulated-people.ts';

const REDELIVERS_AFTER_MS = [5_000, 40_000] as const;
const REDELIVERIES_MAX = 40;
const GROUPS = ['network', 'database'] as const;
export const BURST_EVENT = 'pull_request.synchronize';

export interface SentIncident {
  sysId: string;
  shape: ShapeName;
}

/** ServiceNow and GitHub as senders. They repeat deliveries, at once or much later, until intake accepts them. */
export class Senders {
  readonly incidents: SentIncident[] = [];
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  #sent = 0;

  constructor(time: VirtualTime, random: SeededRandom, functions: Functions) {
    this.#time = time;
    this.#random = random;
    this.#functions = functions;
  }

  /** Sends an incident that starts a run of this shape; sometimes one that was sent before. */
  incident(tenants: readonly string[], shape: ShapeName): SentIncident {
    this.#sent += 1;
    const again = this.incidents.length > 0 && this.#random.chance(0.25);
    const { sysId } = again ? this.#random.pick(this.incidents) : { sysId: this.#sent.toString(16).padStart(32, '0') };
    const delivery = servicenowDelivery({
      instance: 'acme',
      table: 'incident',
      operation: 'insert',
      sys_id: sysId,
      sys_mod_count: this.#sent,
      record: {
        number: `INC${this.#sent}`,
        short_description: `Incident ${this.#sent}`,
        priority: this.#random.pick(['1', '3']),
        shape,
        group: this.#random.pick(GROUPS),
        sys_updated_by: this.#random.pick([REPORTER, REPORTER, 'a stranger']),
      },
    });
    const incident = { sysId, shape };
    this.incidents.push(incident);
    for (const tenant of tenants) this.#deliver(tenant, delivery);
    return incident;
  }

  /**
   * Pushes to one pull request within seconds. GitHub sends each to two hooks, under one delivery id or two and with bodies
   * that differ. An attacker sends a signed body again under another id.
   */
  burst(tenants: readonly string[]): void {
    const [event = '', action] = BURST_EVENT.split('.');
    for (const after of ['first-push', 'second-push']) {
      const shared = this.#random.chance(0.5);
      this.#sent += 1;
      for (const [hook, installation] of [undefined, { id: 5 }, { id: 5 }].entries()) {
        if (!shared || hook === 2) this.#sent += 1;
        const payload = {
          action,
          after,
          number: 7,
          repository: { full_name: 'octo-org/payments' },
          pull_request: { number: 7, title: 'Faster checkout' },
          ...(installation && { installation }),
        };
        const delivery = githubDelivery(
          {
            'x-github-event': event,
            'x-github-delivery': `delivery-${this.#sent}`,
            'x-github-hook-id': String(hook),
          },
          payload,
        );
        this.#time.after(this.#random.between(0, 9_000), () => {
          for (const tenant of tenants) this.#deliver(tenant, delivery);
        });
      }
    }
  }

  #deliver(tenant: string, delivery: Delivery): void {
    const hash = hashOf(delivery.payload);
    const copies = this.#random.chance(0.3) ? this.#random.between(2, 5) : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      this.#time.after(this.#random.between(0, 300), () => this.#sendUntilAccepted(tenant, delivery, hash, 0));
    }
    // A replay much later, and a forged body under the same key.
    if (this.#random.chance(0.2)) this.#time.after(200_000, () => this.#sendUntilAccepted(tenant, delivery, hash, 0));
    if (this.#random.chance(0.1))
      this.#time.after(2_000, () => this.#sendUntilAccepted(tenant, delivery, `not ${hash}`, 0, true));
  }

  #sendUntilAccepted(tenant: string, delivery: Delivery, hash: string, tries: number, once = false): void {
    this.#functions.acceptDelivery(tenant, delivery, hash, (ending) => {
      if (ending === 'returned' || tries >= REDELIVERIES_MAX || once) return;
      const waitMs = this.#random.between(...REDELIVERS_AFTER_MS);
      this.#time.after(waitMs, () => this.#sendUntilAccepted(tenant, delivery, hash, tries + 1));
    });
  }
}

import { servicenowDelivery } from '../../../lambdas/intake/servicenow-delivery.ts';
import { isTerminal, type Run } from '../../../lambdas/run/run.ts';
import type { Functions } from '../environment/functions.ts';
import type { Ending } from '../environment/invocation.ts';
import { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';

/** The person who requests reruns and replays and applies plans: an approver, but not of what they requested. */
export const REQUESTER = 'cy';
/** The incident of the planned runs; no webhook is about it. */
export const PLANNED_INCIDENT = 'a'.repeat(32);

const REPEATS = ['rerun', 'replay', 'replay'] as const;
export type Repeat = (typeof REPEATS)[number];

/** Repeated runs take as much time as others, and two for each simulation are enough. */
const REPEATS_MAX = 2;
const AGAIN_AFTER_MS = 20_000;
const TRIES_MAX = 6;

/**
 * People who repeat runs that have ended, and who plan a run and apply the plan. Every request is sent twice with the same
 * key. They have their own random numbers, so that simulations without them do not change.
 */
export class RunRequesters {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #functions: Functions;
  readonly #known = new Set<string>();

  constructor(time: VirtualTime, seed: number, functions: Functions) {
    this.#time = time;
    this.#random = new SeededRandom(seed * 19 + 7);
    this.#functions = functions;
  }

  /** A run has ended. A repeated run may be repeated too. */
  ended(run: Run): void {
    const { tenant, runId, rollbackOf, request } = run;
    if (!isTerminal(run) || rollbackOf || request?.slot !== undefined) return;
    if (this.#known.has(runId) || this.#known.size >= REPEATS_MAX) return;
    this.#known.add(runId);
    const repeat = this.#random.pick(REPEATS);
    this.#requestTwice(this.#random.between(500, 150_000), (ended) =>
      this.#functions.repeat({ tenant, runId }, repeat, ended),
    );
  }

  /** Plans a run of this automation, and applies the plan some time later. */
  plan(tenant: string, automation: string): void {
    const { source, event, fields, payload, makers } = servicenowDelivery({
      instance: 'acme',
      table: 'incident',
      operation: 'insert',
      sys_id: PLANNED_INCIDENT,
      sys_mod_count: 1,
      record: { number: 'INC0', short_description: 'Planned', priority: '3', shape: automation },
    });
    const trigger = { source, event, fields, payload, makers };
    const applyAfterMs = this.#random.between(1_000, 8_000);
    let planHash: string | undefined;
    this.#sendUntilAccepted(
      (ended) => this.#functions.plan(tenant, automation, trigger, (hash) => (planHash = hash), ended),
      () => {
        const hash = planHash;
        if (hash === undefined) return;
        this.#requestTwice(applyAfterMs, (ended) => this.#functions.applyPlan(tenant, hash, ended));
      },
    );
  }

  #requestTwice(afterMs: number, act: (ended: (ending: Ending) => void) => void): void {
    for (const laterMs of [0, this.#random.between(0, 300)]) {
      this.#time.after(afterMs + laterMs, () => this.#sendUntilAccepted(act, () => {}));
    }
  }

  /** Repeats a request that was refused, or that failed because of a fault. */
  #sendUntilAccepted(act: (ended: (ending: Ending) => void) => void, done: () => void, tries = 1): void {
    act((ending) => {
      if (ending === 'returned') return done();
      if (tries < TRIES_MAX) this.#time.after(AGAIN_AFTER_MS, () => this.#sendUntilAccepted(act, done, tries + 1));
    });
  }
}

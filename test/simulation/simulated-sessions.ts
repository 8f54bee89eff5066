import type { FakeTask } from '../fakes/fake-a2a.ts';
import type { FaultyCalls } from './faulty-calls.ts';
import type { Functions } from './functions.ts';
import type { SessionInvariants } from './invariants/sessions.ts';
import type { SeededRandom } from './seeded-random.ts';
import { SessionProcess } from './session-process.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What a session does instead of its work. */
export const SESSION_KINDS = [
  'works',
  'completes_twice',
  'races_itself',
  'reaches_beyond',
  'reports_another_id',
  'dies',
  'ends_early',
  'disappears',
  'silent',
  'late',
] as const;
export type SessionKind = (typeof SESSION_KINDS)[number];

/** How the sessions of a scenario behave. */
export interface SessionBehavior {
  kinds: readonly SessionKind[];
  /** How long a session works before each of its requests. */
  workMs: readonly [from: number, to: number];
}

export interface SessionWorld {
  time: VirtualTime;
  random: SeededRandom;
  faultyCalls: FaultyCalls;
  functions: () => Functions;
  invariants: SessionInvariants;
}

/** The agent of somebody else in which sessions run. */
export class SimulatedSessions {
  readonly #world: SessionWorld;
  readonly #behavior: SessionBehavior;

  constructor(world: SessionWorld, behavior: SessionBehavior) {
    this.#world = world;
    this.#behavior = behavior;
  }

  /** The agent has accepted a message and starts to work. */
  start(tenant: string, task: FakeTask): void {
    const kind = this.#world.random.pick(this.#behavior.kinds);
    new SessionProcess(this.#world, this.#behavior, tenant, task, kind).run();
  }
}

import type { FakeTask } from '../../fakes/targets/fake-a2a.ts';
import type { FaultyCalls } from '../environment/faulty-calls.ts';
import type { Functions } from '../environment/functions.ts';
import type { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';
import type { SessionInvariants } from '../invariants/sessions.ts';
import { type Contract, type SessionPlace, SessionProcess } from './session-process.ts';

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

/** The command of an enrolled agent that is a session. */
export interface SessionCommand {
  tenant: string;
  id: string;
  stdin: string;
  ends: (how: 'completed' | 'failed') => void;
  /** The host of the agent crashes. */
  crashes: () => void;
}

/** The sessions of a scenario: in the agent of somebody else, or as commands of enrolled agents. */
export class SimulatedSessions {
  readonly #world: SessionWorld;
  readonly #behavior: SessionBehavior;

  constructor(world: SessionWorld, behavior: SessionBehavior) {
    this.#world = world;
    this.#behavior = behavior;
  }

  /** The agent of somebody else has accepted a message and starts to work. */
  start(tenant: string, task: FakeTask): void {
    const { invariants } = this.#world;
    this.#begin(tenant, {
      id: task.id,
      contract: task.messages[0]?.data as unknown as Contract,
      get isAtWork() {
        return task.state === 'TASK_STATE_WORKING';
      },
      notifies: true,
      end: (how) => {
        task.state = how === 'completed' ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_FAILED';
      },
      disappear: () => invariants.disappeared(tenant, task),
    });
  }

  /** An enrolled agent has started the command of a session, which reads its prompt. */
  startCommand({ tenant, id, stdin, ends, crashes }: SessionCommand): SessionProcess {
    let isAtWork = true;
    return this.#begin(tenant, {
      ...{ id, contract: JSON.parse(stdin).data, notifies: false },
      get isAtWork() {
        return isAtWork;
      },
      end: (how) => {
        isAtWork = false;
        ends(how);
      },
      disappear: crashes,
    });
  }

  #begin(tenant: string, place: SessionPlace): SessionProcess {
    const kind = this.#world.random.pick(this.#behavior.kinds);
    const process = new SessionProcess(this.#world, this.#behavior, tenant, place, kind);
    process.run();
    return process;
  }
}

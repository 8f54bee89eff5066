import type { SeededRandom } from './environment/seeded-random.ts';

/** The kind of port that a call goes to: each has its own faults. */
export type CallKind =
  | 'store'
  | 'index'
  | 'queue'
  | 'outbox'
  | 'read'
  | 'evidence'
  | 'target'
  | 'policy'
  | 'notification'
  | 'agent';

export interface PortCall {
  kind: CallKind;
  name: string;
}

/** What can go wrong with a call: first the faults of the caller, then those of the called system. */
export type Fault =
  | 'crash_before'
  | 'crash_after'
  | 'pause'
  | 'slow'
  | 'throttle'
  | 'conflict'
  | 'lost_reply'
  | 'repeated'
  | 'stale'
  | 'message_lost'
  | 'message_doubled'
  | 'message_delayed'
  | 'rate_limited'
  | 'server_error'
  | 'server_error_after'
  | 'lost_request'
  | 'unreachable'
  | 'truncated'
  | 'policies_unreadable'
  | 'policy_error'
  | 'policy_slow';

/** Possible at every call: the caller crashes before or after it, or pauses beyond its lease; the reply is lost; the call is rejected. */
export const CRASH_POINT_FAULTS = ['crash_before', 'crash_after', 'lost_reply', 'throttle', 'pause'] as const;

const AT_EVERY_CALL: readonly Fault[] = ['crash_before', 'crash_after', 'pause', 'slow', 'throttle', 'lost_reply'];
const MESSAGES: readonly Fault[] = ['message_lost', 'message_doubled', 'message_delayed'];
const POSSIBLE: Record<CallKind, readonly Fault[]> = {
  store: [...AT_EVERY_CALL, 'conflict', 'repeated'],
  index: [...AT_EVERY_CALL, 'stale'],
  queue: [...AT_EVERY_CALL, ...MESSAGES],
  outbox: [...AT_EVERY_CALL, ...MESSAGES],
  read: AT_EVERY_CALL,
  evidence: AT_EVERY_CALL,
  /** The policy engine runs in the process of the caller, so no reply can be lost. */
  policy: ['crash_before', 'crash_after', 'pause', 'slow', 'policies_unreadable', 'policy_error', 'policy_slow'],
  /** Cards and task tokens. */
  notification: AT_EVERY_CALL,
  /** Requests of agents over the network: the agent crashes or is suspended, or the request or its response is lost. */
  agent: [...AT_EVERY_CALL, 'unreachable'],
  target: [
    ...AT_EVERY_CALL.filter((fault) => fault !== 'throttle'),
    ...(['rate_limited', 'server_error', 'server_error_after', 'lost_request', 'unreachable', 'truncated'] as const),
  ],
};
export const ALL_FAULTS: readonly Fault[] = [...new Set(Object.values(POSSIBLE).flat())];

/** Chooses the fault of each call, and counts the faults that it injected. */
export abstract class FaultPlan {
  readonly injected = new Map<Fault, number>();
  calls = 0;
  /** No more faults are injected: from now on every run must end. */
  over = false;

  faultFor(call: PortCall): Fault | undefined {
    this.calls += 1;
    const fault = this.over ? undefined : this.choose(call);
    if (fault) this.injected.set(fault, (this.injected.get(fault) ?? 0) + 1);
    return fault;
  }

  protected abstract choose(call: PortCall): Fault | undefined;
}

export class NoFaults extends FaultPlan {
  protected override choose(): undefined {
    return undefined;
  }
}

/** One fault at one call, which is given by its number. */
export class OneFault extends FaultPlan {
  readonly #at: number;
  readonly #fault: Fault;

  constructor(at: number, fault: Fault) {
    super();
    this.#at = at;
    this.#fault = fault;
  }

  protected override choose(call: PortCall): Fault | undefined {
    if (this.calls !== this.#at) return undefined;
    if (call.kind === 'target' && this.#fault === 'throttle') return 'rate_limited';
    if (call.kind === 'policy' && this.#fault === 'throttle') return 'policies_unreadable';
    if (call.kind === 'policy' && this.#fault === 'lost_reply') return 'policy_slow';
    return this.#fault;
  }
}

/** Random faults of these kinds, each with its own rate. */
export class RandomFaults extends FaultPlan {
  readonly #random: SeededRandom;
  readonly #rates: Partial<Record<Fault, number>>;
  readonly #losesEveryMessage: boolean;

  constructor(random: SeededRandom, rates: Partial<Record<Fault, number>>, losesEveryMessage = false) {
    super();
    this.#random = random;
    this.#rates = rates;
    this.#losesEveryMessage = losesEveryMessage;
  }

  protected override choose({ kind }: PortCall): Fault | undefined {
    if (this.#losesEveryMessage && kind === 'queue') return 'message_lost';
    for (const fault of POSSIBLE[kind]) {
      const rate = this.#rates[fault];
      if (rate !== undefined && this.#random.chance(rate)) return fault;
    }
    return undefined;
  }
}

/** Only a few kinds in one simulation: many kinds at once would hide the effect of each. */
export function randomFaults(random: SeededRandom): FaultPlan {
  const kinds = random.some(ALL_FAULTS, 7);
  const rates = Object.fromEntries(kinds.map((kind) => [kind, random.pick([0.01, 0.03, 0.08, 0.2])]));
  return new RandomFaults(random, rates, random.chance(0.05));
}

/** The error that a caller gets for a fault. The class distinguishes it from errors of the engine. */
export class InjectedFault extends Error {
  constructor(fault: Fault, call: PortCall) {
    super(`${fault} at ${call.name}`);
    this.name = 'InjectedFault';
  }
}

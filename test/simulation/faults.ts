import type { SeededRandom } from './seeded-random.ts';

/** Which neighbour a call goes to: each has its own ways to fail. */
export type CallKind =
  | 'store'
  | 'index'
  | 'queue'
  | 'outbox'
  | 'reading'
  | 'evidence'
  | 'outside'
  | 'policy'
  | 'people';

export interface PortCall {
  kind: CallKind;
  name: string;
}

/** What may befall a call. The caller's own faults first, then those of the thing called. */
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

/** Of every call: its caller crashes before or after, its reply is lost or late beyond the lease, or it is refused. */
export const CRASH_POINT_FAULTS = ['crash_before', 'crash_after', 'lost_reply', 'throttle', 'pause'] as const;

const ANYWHERE: readonly Fault[] = ['crash_before', 'crash_after', 'pause', 'slow', 'throttle', 'lost_reply'];
const MESSAGES: readonly Fault[] = ['message_lost', 'message_doubled', 'message_delayed'];
const POSSIBLE: Record<CallKind, readonly Fault[]> = {
  store: [...ANYWHERE, 'conflict', 'repeated'],
  index: [...ANYWHERE, 'stale'],
  queue: [...ANYWHERE, ...MESSAGES],
  outbox: [...ANYWHERE, ...MESSAGES],
  reading: ANYWHERE,
  evidence: ANYWHERE,
  /** It runs in the caller's own process, and always answers. */
  policy: ['crash_before', 'crash_after', 'pause', 'slow', 'policies_unreadable', 'policy_error', 'policy_slow'],
  /** Cards and task tokens. */
  people: ANYWHERE,
  outside: [
    ...ANYWHERE.filter((fault) => fault !== 'throttle'),
    ...(['rate_limited', 'server_error', 'server_error_after', 'lost_request', 'unreachable', 'truncated'] as const),
  ],
};
export const ALL_FAULTS: readonly Fault[] = [...new Set(Object.values(POSSIBLE).flat())];

/** Decides what befalls each call, and counts what it let happen. */
export abstract class FaultPlan {
  readonly injected = new Map<Fault, number>();
  calls = 0;
  /** Faults stop for good: from here on everything must come to rest. */
  over = false;

  decide(call: PortCall): Fault | undefined {
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

/** One fault, at one call of the world, by its number. */
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
    if (call.kind === 'outside' && this.#fault === 'throttle') return 'rate_limited';
    if (call.kind === 'policy' && this.#fault === 'throttle') return 'policies_unreadable';
    if (call.kind === 'policy' && this.#fault === 'lost_reply') return 'policy_slow';
    return this.#fault;
  }
}

/** Faults of chosen kinds, each at a rate of its own. */
export class ChosenFaults extends FaultPlan {
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

/** A few kinds at a time: a world with everything at once would hide what one fault alone does. */
export function seededFaults(random: SeededRandom): FaultPlan {
  const kinds = random.some(ALL_FAULTS, 7);
  const rates = Object.fromEntries(kinds.map((kind) => [kind, random.pick([0.01, 0.03, 0.08, 0.2])]));
  return new ChosenFaults(random, rates, random.chance(0.05));
}

/** The error that a caller gets for a fault. The class distinguishes it from errors of the engine. */
export class InjectedFault extends Error {
  constructor(fault: Fault, call: PortCall) {
    super(`${fault} at ${call.name}`);
    this.name = 'InjectedFault';
  }
}

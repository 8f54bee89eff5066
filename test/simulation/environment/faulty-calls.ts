import { type Fault, type FaultPlan, InjectedFault, type PortCall } from '../faults.ts';
import type { Invocation } from './invocation.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const SLOW_MS = [800, 9_000] as const;
const CONFLICT_MS = [50, 1_500] as const;
/** All longer than a lease. After the short ones the next worker is still running; the long ones exceed any clock skew. */
const PAUSES_MS = [
  [61_000, 70_000],
  [75_000, 240_000],
] as const;

/** What a call does. It gets the fault, because some faults it must simulate itself: a stale read, a lost message. */
export type CallEffect<T> = (fault: Fault | undefined) => Promise<T>;

/**
 * Calls of an invocation to its ports. Every call takes time, in which other invocations run. A call that was sent takes
 * effect even if its sender is killed meanwhile; a killed sender gets no reply.
 */
export class FaultyCalls {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #plan: FaultPlan;
  readonly #log: (line: string) => void;
  readonly #portDelayMs: readonly [from: number, to: number];

  constructor(
    time: VirtualTime,
    random: SeededRandom,
    { plan, portDelayMs }: { plan: FaultPlan; portDelayMs: readonly [from: number, to: number] },
    log: (line: string) => void,
  ) {
    this.#time = time;
    this.#random = random;
    this.#plan = plan;
    this.#log = log;
    this.#portDelayMs = portDelayMs;
  }

  /** The fault of this call. Simulated targets use it directly, because they simulate their faults themselves. */
  chooseFault(by: Invocation, call: PortCall): Fault | undefined {
    const fault = this.#plan.faultFor(call);
    this.#log(`${by.id} ${call.name}${fault ? `  <- ${fault}` : ''}`);
    return fault;
  }

  delayMs(range = this.#portDelayMs): number {
    return this.#random.between(...range);
  }

  pauseMs(): number {
    return this.delayMs(this.#random.pick(PAUSES_MS));
  }

  call<T>(by: Invocation, call: PortCall, effect: CallEffect<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (by.isKilled) return;
      const counts = hasEffect(call) ? 1 : 0;
      by.openCalls += counts;
      const fault = this.chooseFault(by, call);
      if (fault === 'crash_before') return by.kill();
      const reply = (then: () => void) =>
        this.#reply(by, fault, () => {
          by.openCalls -= counts;
          then();
        });
      const isRejected = fault === 'conflict' && this.#random.chance(0.5);
      this.#time.after(this.#requestDelayMs(fault), () => {
        if (fault === 'throttle' || fault === 'unreachable' || isRejected)
          return reply(() => reject(new InjectedFault(fault, call)));
        const settled = fault === 'repeated' ? this.#twice(effect) : effect(fault);
        if (fault === 'crash_after') by.kill();
        settled.then(
          (value) => reply(() => (fault === 'lost_reply' ? reject(new InjectedFault(fault, call)) : resolve(value))),
          (error: unknown) => reply(() => reject(error)),
        );
      });
    });
  }

  /** The SDK client retries because the first reply was lost: the caller gets the second one. */
  #twice<T>(effect: CallEffect<T>): Promise<T> {
    return effect('repeated').then(
      () =>
        new Promise<T>((resolve, reject) =>
          this.#time.after(this.delayMs(CONFLICT_MS), () => effect('repeated').then(resolve, reject)),
        ),
    );
  }

  #requestDelayMs(fault: Fault | undefined): number {
    if (fault === 'slow') return this.delayMs(SLOW_MS);
    return fault === 'conflict' ? this.delayMs(CONFLICT_MS) : this.delayMs();
  }

  #reply(by: Invocation, fault: Fault | undefined, then: () => void): void {
    if (fault === 'pause') by.pause(this.pauseMs());
    this.#time.after(this.delayMs(), () => by.resume(then));
  }
}

/** Calls that an invocation must await: a read that is left behind is harmless, and a renewal decides nothing. */
const hasEffect = ({ kind, name }: PortCall) => kind !== 'read' && kind !== 'index' && name !== 'renewLease';

import { type Fault, type FaultPlan, InjectedFault, type PortCall } from './faults.ts';
import type { Invocation } from './invocation.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

const SLOW_MS = [800, 9_000] as const;
const CONFLICT_MS = [50, 1_500] as const;
/** Longer than a lease: so that the next worker is still running, or longer than any clock skew. */
const PAUSES_MS = [
  [61_000, 70_000],
  [75_000, 240_000],
] as const;

/** The effect of a call. It gets the faults that it must simulate itself: a stale read, a lost message. */
export type CallEffect<T> = (fault: Fault | undefined) => Promise<T>;

/**
 * The way from an invocation to its neighbours and back. Every call takes time, in which others go on; what was sent
 * arrives even if its sender has died meanwhile; and a dead sender never hears of it.
 */
export class Crossings {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #plan: FaultPlan;
  readonly #log: (line: string) => void;
  readonly #nearMs: readonly [from: number, to: number];

  constructor(
    time: VirtualTime,
    random: SeededRandom,
    { plan, nearMs }: { plan: FaultPlan; nearMs: readonly [from: number, to: number] },
    log: (line: string) => void,
  ) {
    this.#time = time;
    this.#random = random;
    this.#plan = plan;
    this.#log = log;
    this.#nearMs = nearMs;
  }

  /** The fault of this call; simulated targets have their own faults and ask separately. */
  decide(by: Invocation, call: PortCall): Fault | undefined {
    const fault = this.#plan.decide(call);
    this.#log(`${by.id} ${call.name}${fault ? `  <- ${fault}` : ''}`);
    return fault;
  }

  delayMs(range = this.#nearMs): number {
    return this.#random.between(...range);
  }

  pauseMs(): number {
    return this.delayMs(this.#random.pick(PAUSES_MS));
  }

  cross<T>(by: Invocation, call: PortCall, effect: CallEffect<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (by.isDead) return;
      const counts = hasEffect(call) ? 1 : 0;
      by.underWay += counts;
      const fault = this.decide(by, call);
      if (fault === 'crash_before') return by.die();
      const home = (then: () => void) =>
        this.#reply(by, fault, () => {
          by.underWay -= counts;
          then();
        });
      const givenUp = fault === 'conflict' && this.#random.chance(0.5);
      this.#time.after(this.#wayThereMs(fault), () => {
        if (fault === 'throttle' || givenUp) return home(() => reject(new InjectedFault(fault, call)));
        const settled = fault === 'repeated' ? this.#twice(effect) : effect(fault);
        if (fault === 'crash_after') by.die();
        settled.then(
          (value) => home(() => (fault === 'lost_reply' ? reject(new InjectedFault(fault, call)) : resolve(value))),
          (error: unknown) => home(() => reject(error)),
        );
      });
    });
  }

  /** The client tries again by itself because the first reply was lost: the second one is what the caller hears. */
  #twice<T>(effect: CallEffect<T>): Promise<T> {
    return effect('repeated').then(
      () =>
        new Promise<T>((resolve, reject) =>
          this.#time.after(this.delayMs(CONFLICT_MS), () => effect('repeated').then(resolve, reject)),
        ),
    );
  }

  #wayThereMs(fault: Fault | undefined): number {
    if (fault === 'slow') return this.delayMs(SLOW_MS);
    return fault === 'conflict' ? this.delayMs(CONFLICT_MS) : this.delayMs();
  }

  #reply(by: Invocation, fault: Fault | undefined, then: () => void): void {
    if (fault === 'pause') by.pause(this.pauseMs());
    this.#time.after(this.delayMs(), () => by.goOn(then));
  }
}

/** What must not be left behind: reading again is harmless, and a renewal decides nothing. */
const hasEffect = ({ kind, name }: PortCall) => kind !== 'reading' && kind !== 'index' && name !== 'renewLease';

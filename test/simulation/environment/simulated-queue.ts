import type { Fault } from '../faults.ts';
import type { Ending } from './invocation.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { VirtualTime } from './virtual-time.ts';

/** AWS advises six times the consumer's timeout, and the stack does so. */
const VISIBILITY_MS = 180_000;
const RECEIVES_MAX = 5;
const SOON_MS = 60;
const LATE_MS = [2_000, 150_000] as const;

/** Starts a consumer of a message, and reports how it ended. */
export type Consume<Message> = (message: Message, ended: (ending: Ending) => void) => void;

/** A standard queue: messages arrive late, twice, in any order or not at all, and again if their consumer failed. */
export class SimulatedQueue<Message> {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #consume: Consume<Message>;
  readonly #doubledWithinMs: number;
  readonly #waiting: { message: Message; receives: number }[] = [];
  #free: number;
  #open = 0;
  deadLetters = 0;

  constructor(
    time: VirtualTime,
    random: SeededRandom,
    consumers: number,
    consume: Consume<Message>,
    /** The second copy of a message arrives within this time. */
    doubledWithinMs = SOON_MS,
  ) {
    this.#doubledWithinMs = doubledWithinMs;
    this.#time = time;
    this.#random = random;
    this.#free = consumers;
    this.#consume = consume;
  }

  /** Messages that are sent and whose consumer has not ended. */
  get open(): number {
    return this.#open;
  }

  send(message: Message, delayMs: number, fault: Fault | undefined): void {
    if (fault === 'message_lost') return;
    const copies = fault === 'message_doubled' || fault === 'repeated' ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      const soonMs = copy === 0 ? SOON_MS : this.#doubledWithinMs;
      const late = fault === 'message_delayed' ? this.#random.between(...LATE_MS) : this.#random.between(1, soonMs);
      this.#put({ message, receives: 0 }, delayMs + late);
    }
  }

  #put(entry: { message: Message; receives: number }, delayMs: number): void {
    this.#open += 1;
    this.#time.after(delayMs, () => {
      this.#waiting.push(entry);
      this.#serve();
    });
  }

  #serve(): void {
    while (this.#free > 0 && this.#waiting.length > 0) {
      const [entry] = this.#waiting.splice(this.#random.between(0, this.#waiting.length), 1);
      if (!entry) return;
      this.#free -= 1;
      entry.receives += 1;
      this.#consume(entry.message, (ending) => {
        this.#free += 1;
        this.#open -= 1;
        if (ending !== 'returned') this.#receiveAgain(entry);
        // Later, because a queue never starts a consumer inside another one.
        this.#time.after(1, () => this.#serve());
      });
    }
  }

  #receiveAgain(entry: { message: Message; receives: number }): void {
    if (entry.receives < RECEIVES_MAX) this.#put(entry, VISIBILITY_MS);
    else this.deadLetters += 1;
  }
}

import type { VirtualTime } from './environment/virtual-time.ts';

const LINES_MAX = 400;

/** The last events of a simulation, one line for each. */
export class EventLog {
  readonly #time: VirtualTime;
  readonly #print: ((line: string) => void) | undefined;
  readonly #beganAtMs: number;
  /** Most are never shown, so their text is made when they are. */
  readonly #last: { atMs: number; what: string }[] = [];
  #count = 0;

  constructor(time: VirtualTime, print: ((line: string) => void) | undefined) {
    this.#time = time;
    this.#print = print;
    this.#beganAtMs = time.now();
  }

  add(what: string): void {
    const event = { atMs: this.#time.now(), what };
    this.#last[this.#count % LINES_MAX] = event;
    this.#count += 1;
    this.#print?.(this.#line(event));
  }

  #line({ atMs, what }: { atMs: number; what: string }): string {
    const seconds = ((atMs - this.#beganAtMs) / 1000).toFixed(3).padStart(9);
    return `${seconds} s  ${what}`;
  }

  last(count: number): string[] {
    const from = Math.max(0, this.#count - Math.min(count, LINES_MAX));
    return Array.from({ length: this.#count - from }, (_, at) => {
      const event = this.#last[(from + at) % LINES_MAX];
      return event ? this.#line(event) : '';
    });
  }
}

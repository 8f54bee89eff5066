import type { VirtualTime } from './environment/virtual-time.ts';

const LINES_MAX = 400;

/** The last events of a simulation, one line for each. */
export class EventLog {
  readonly #time: VirtualTime;
  readonly #print: ((line: string) => void) | undefined;
  readonly #beganAtMs: number;
  readonly #lines: string[] = [];
  #count = 0;

  constructor(time: VirtualTime, print: ((line: string) => void) | undefined) {
    this.#time = time;
    this.#print = print;
    this.#beganAtMs = time.now();
  }

  add(what: string): void {
    const seconds = ((this.#time.now() - this.#beganAtMs) / 1000).toFixed(3).padStart(9);
    const line = `${seconds} s  ${what}`;
    this.#lines[this.#count % LINES_MAX] = line;
    this.#count += 1;
    this.#print?.(line);
  }

  last(count: number): string[] {
    const from = Math.max(0, this.#count - Math.min(count, LINES_MAX));
    return Array.from({ length: this.#count - from }, (_, at) => this.#lines[(from + at) % LINES_MAX] as string);
  }
}

import type { VirtualTime } from './virtual-time.ts';

const LINES_KEPT = 400;

/** What happened in a world, line by line; only the end of it is kept. */
export class Story {
  readonly #time: VirtualTime;
  readonly #tell: ((line: string) => void) | undefined;
  readonly #beganAtMs: number;
  readonly #lines: string[] = [];
  #count = 0;

  constructor(time: VirtualTime, tell: ((line: string) => void) | undefined) {
    this.#time = time;
    this.#tell = tell;
    this.#beganAtMs = time.now();
  }

  tell(what: string): void {
    const seconds = ((this.#time.now() - this.#beganAtMs) / 1000).toFixed(3).padStart(9);
    const line = `${seconds} s  ${what}`;
    this.#lines[this.#count % LINES_KEPT] = line;
    this.#count += 1;
    this.#tell?.(line);
  }

  last(count: number): string[] {
    const from = Math.max(0, this.#count - Math.min(count, LINES_KEPT));
    return Array.from({ length: this.#count - from }, (_, at) => this.#lines[(from + at) % LINES_KEPT] as string);
  }
}

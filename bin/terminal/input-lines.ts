import { createInterface, type Interface } from 'node:readline';

/** The lines that a person types. Lines that arrive before they are asked for wait, as when somebody pastes several. */
export class InputLines {
  readonly #input: NodeJS.ReadableStream;
  readonly #received: string[] = [];
  #reader: Interface | undefined;
  #isOver = false;
  #deliver: ((line: string | undefined) => void) | undefined;

  constructor(input: NodeJS.ReadableStream) {
    this.#input = input;
  }

  /** The next line; undefined if the input has ended (Ctrl-D). */
  next(): Promise<string | undefined> {
    if (this.#received.length > 0) return Promise.resolve(this.#received.shift());
    if (this.#isOver) return Promise.resolve(undefined);
    const line = new Promise<string | undefined>((resolve) => {
      this.#deliver = resolve;
    });
    this.#open().resume();
    return line;
  }

  /** `terminal: false`, so that Ctrl-C stays a signal. */
  #open(): Interface {
    if (this.#reader) return this.#reader;
    const reader = createInterface({ input: this.#input, terminal: false });
    reader.on('line', (line) => {
      if (this.#deliver) this.#settle(line);
      else this.#received.push(line);
    });
    reader.on('close', () => {
      this.#isOver = true;
      this.#settle(undefined);
    });
    this.#reader = reader;
    return reader;
  }

  /** Nothing is read until the next question, so that the process can end. */
  #settle(line: string | undefined): void {
    const deliver = this.#deliver;
    this.#deliver = undefined;
    if (!this.#isOver) this.#reader?.pause();
    deliver?.(line);
  }
}

import { wrap, wrapIndented } from './fit-text.ts';
import { type Cell, type Column, type TonedText, table } from './table.ts';
import type { Terminal, Tone } from './terminal.ts';

const LABEL_COLUMNS = 12;

/** The output of a `show` command: headings, fields, lines and tables. Long text is wrapped, never cut. */
export class Page {
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  title(name: string, { text, tone }: TonedText): void {
    this.#terminal.print(`${this.#terminal.paint('strong', name)}  ${this.#terminal.paint(tone, text)}`);
  }

  heading(text: string): void {
    this.blank();
    this.#terminal.print(this.#terminal.paint('strong', text));
  }

  blank(): void {
    this.#terminal.print('');
  }

  field(name: string, value: string, tone?: Tone): void {
    const [first = '', ...rest] = wrap(value, this.#terminal.columns - LABEL_COLUMNS);
    this.exactField(name, first, tone);
    for (const line of rest) this.exactField('', line, tone);
  }

  /** For values that people copy or compare: never wrapped. */
  exactField(name: string, value: string, tone?: Tone): void {
    const label = name.padEnd(LABEL_COLUMNS);
    this.#terminal.print(`${this.#terminal.paint('quiet', label)}${this.#terminal.paint(tone, value)}`);
  }

  /** A list entry. Its text is wrapped to the right of the prefix. */
  entry(prefix: string, text: string, tone?: Tone): void {
    const [first = '', ...rest] = wrap(text, this.#terminal.columns - prefix.length);
    this.exactLine(prefix + first, tone);
    for (const line of rest) this.exactLine(' '.repeat(prefix.length) + line, tone);
  }

  line(text: string, tone?: Tone): void {
    for (const line of wrapIndented(text, this.#terminal.columns)) this.exactLine(line, tone);
  }

  exactLine(text: string, tone?: Tone): void {
    this.#terminal.print(this.#terminal.paint(tone, text));
  }

  table(columns: readonly Column[], rows: readonly (readonly Cell[])[]): void {
    for (const line of table(columns, rows, this.#terminal)) this.#terminal.print(line);
  }

  /** Shortens hashes and sys_ids on a terminal. A pipe gets them in full. */
  short(text: string): string {
    return this.#terminal.isInteractive ? withShortIds(text) : text;
  }
}

export const withShortIds = (text: string) => text.replace(/\b((?:run_)?[0-9a-f]{8})[0-9a-f]{24,}\b/g, '$1…');

import { withShortIds } from '../commands/runs/run-text.ts';
import { wrap, wrapUnder } from './fit-text.ts';
import { type Cell, type Column, table } from './table.ts';
import type { Terminal, Tone } from './terminal.ts';

const LABEL_COLUMNS = 12;

/** What a command shows of one thing: headings, fields, lines and tables. Nothing is cut; what does not fit goes on below. */
export class Page {
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** The thing's name and how it stands. */
  title(name: string, status: Cell): void {
    const { text, tone } = typeof status === 'string' ? { text: status, tone: undefined } : status;
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
    this.whole(name, first, tone);
    for (const line of rest) this.whole('', line, tone);
  }

  /** A line of a list, which goes on under its text and not under what stands before it. */
  entry(before: string, text: string, tone?: Tone): void {
    const [first = '', ...rest] = wrap(text, this.#terminal.columns - before.length);
    this.wholeLine(before + first, tone);
    for (const line of rest) this.wholeLine(' '.repeat(before.length) + line, tone);
  }

  /** What must be read or copied exactly is broken by the terminal alone; everything else between words. */
  whole(name: string, value: string, tone?: Tone): void {
    const label = name.padEnd(LABEL_COLUMNS);
    this.#terminal.print(`${this.#terminal.paint('quiet', label)}${this.#terminal.paint(tone, value)}`);
  }

  line(text: string, tone?: Tone): void {
    for (const line of wrapUnder(text, this.#terminal.columns)) this.wholeLine(line, tone);
  }

  wholeLine(text: string, tone?: Tone): void {
    this.#terminal.print(this.#terminal.paint(tone, text));
  }

  table(columns: readonly Column[], rows: readonly Cell[][]): void {
    for (const line of table(columns, rows, this.#terminal)) this.#terminal.print(line);
  }

  /** A person needs no more of a hash than tells it apart; a pipe gets it in full. */
  short(text: string): string {
    return this.#terminal.isInteractive ? withShortIds(text) : text;
  }
}

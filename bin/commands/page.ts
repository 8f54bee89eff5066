import { withShortIds } from './run-words.ts';
import { type Cell, type Column, cut, table } from './table.ts';
import type { Terminal, Tone } from './terminal.ts';

const LABEL_COLUMNS = 12;

/** What a command shows of one thing: headings, fields, lines and tables, none wider than the terminal. */
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
    this.whole(name, cut(value, this.#terminal.columns - LABEL_COLUMNS), tone);
  }

  /** What must be read or copied in full wraps at the terminal's edge; everything else is cut there. */
  whole(name: string, value: string, tone?: Tone): void {
    const label = name.padEnd(LABEL_COLUMNS);
    this.#terminal.print(`${this.#terminal.paint('quiet', label)}${this.#terminal.paint(tone, value)}`);
  }

  line(text: string, tone?: Tone): void {
    this.wholeLine(cut(text, this.#terminal.columns), tone);
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

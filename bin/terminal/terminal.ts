import { styleText } from 'node:util';
import { InputEnded } from '../commands/failure.ts';
import { InputLines } from './input-lines.ts';

export type Tone = 'good' | 'bad' | 'busy' | 'waiting' | 'quiet' | 'strong';

const STYLES = {
  good: 'green',
  bad: 'red',
  busy: 'cyan',
  waiting: 'yellow',
  quiet: 'dim',
  strong: 'bold',
} as const satisfies Record<Tone, Parameters<typeof styleText>[0]>;

/** The output of a command: a terminal with colours and a width, or a pipe without them. */
export interface Terminal {
  /** On a terminal, commands print ages instead of times, and short ids. */
  isInteractive: boolean;
  /** Infinite for a pipe, or if the terminal does not report its width. */
  columns: number;
  print(line: string): void;
  /** Hints and errors, on stderr. */
  note(line: string): void;
  paint(tone: Tone | undefined, text: string): string;
  /** The person's input, empty for Enter; undefined without a terminal. Throws `InputEnded` after Ctrl-D. */
  ask(question: string): Promise<string | undefined>;
}

interface Streams {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean };
  stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
  stderr: NodeJS.WritableStream & { isTTY?: boolean };
}

/** The terminal of a process. */
export function processTerminal({ stdin, stdout, stderr }: Streams = process): Terminal {
  const lines = new InputLines(stdin);
  return {
    isInteractive: stdout.isTTY === true,
    columns: (stdout.isTTY && stdout.columns) || Number.POSITIVE_INFINITY,
    print: (line) => void stdout.write(`${line}\n`),
    note: (line) => void stderr.write(`${line}\n`),
    // styleText respects the stream, NO_COLOR and FORCE_COLOR.
    paint: (tone, text) => (tone ? styleText(STYLES[tone], text, { stream: stdout }) : text),
    async ask(question) {
      if (!stdin.isTTY || !stderr.isTTY) return undefined;
      stderr.write(question);
      const line = await lines.next();
      if (line !== undefined) return line;
      stderr.write('\n');
      throw new InputEnded();
    },
  };
}

/** C0 and C1 control characters, and characters that change the text direction. */
const UNPRINTABLE = /[\p{Cc}\u202a-\u202e\u2066-\u2069]+/gu;

/** Removes control characters: anybody can open a ticket, and its title must not control the reader's terminal. */
export function printable<T>(value: T): T {
  if (typeof value === 'string') return value.replace(UNPRINTABLE, ' ') as T;
  if (Array.isArray(value)) return value.map(printable) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [printable(key), printable(inner)])) as T;
}

import { createInterface } from 'node:readline';
import { styleText } from 'node:util';

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
  /** The person's input, empty for Enter or end of input; undefined without a terminal. */
  ask(question: string): Promise<string | undefined>;
}

export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  return {
    isInteractive: stdout.isTTY === true,
    columns: (stdout.isTTY && stdout.columns) || Number.POSITIVE_INFINITY,
    print: (line) => void stdout.write(`${line}\n`),
    note: (line) => void stderr.write(`${line}\n`),
    // styleText respects the stream, NO_COLOR and FORCE_COLOR.
    paint: (tone, text) => (tone ? styleText(STYLES[tone], text, { stream: stdout }) : text),
    ask: async (question) => (process.stdin.isTTY && stderr.isTTY ? askAtTerminal(question) : undefined),
  };
}

/** `terminal: false` so that Ctrl-C stays a signal. */
async function askAtTerminal(question: string): Promise<string> {
  // After Ctrl-D there is nothing to wait for: no event would come.
  if (process.stdin.readableEnded) return '';
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  return new Promise<string>((resolve) => {
    lines.once('close', () => resolve(''));
    lines.question(question, resolve);
  }).finally(() => lines.close());
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

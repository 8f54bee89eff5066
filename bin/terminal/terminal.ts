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

/** Where a command writes: a person's terminal, with colours and a width to fit, or a pipe, with neither. */
export interface Terminal {
  /** True if a person looks at the output: ages instead of times, and the beginning of an id where that is enough. */
  isInteractive: boolean;
  /** How wide a line may be; unbounded in a pipe, and where the terminal does not say. */
  columns: number;
  print(line: string): void;
  /** Beside the result: hints and errors, never part of what is piped on. */
  note(line: string): void;
  paint(tone: Tone | undefined, text: string): string;
  /** What a person answers, empty if they only press Enter or end the input; undefined if there is nobody to ask. */
  ask(question: string): Promise<string | undefined>;
}

export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  return {
    isInteractive: stdout.isTTY === true,
    columns: (stdout.isTTY && stdout.columns) || Number.POSITIVE_INFINITY,
    print: (line) => void stdout.write(`${line}\n`),
    note: (line) => void stderr.write(`${line}\n`),
    // styleText looks at the stream, NO_COLOR and FORCE_COLOR itself.
    paint: (tone, text) => (tone ? styleText(STYLES[tone], text, { stream: stdout }) : text),
    ask: async (question) => (process.stdin.isTTY && stderr.isTTY ? askAtTerminal(question) : undefined),
  };
}

/** Not as a terminal of readline's own: so Ctrl-C stays a signal. */
function askAtTerminal(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  return new Promise<string>((resolve) => {
    lines.once('close', () => resolve(''));
    lines.question(question, resolve);
  }).finally(() => lines.close());
}

/** C0 and C1 controls, and marks that turn the direction of text around. */
const UNPRINTABLE = /[\p{Cc}\u202a-\u202e\u2066-\u2069]+/gu;

/** Titles come from whoever opens a ticket: what they contain must not steer the reader's terminal. */
export function printable<T>(value: T): T {
  if (typeof value === 'string') return value.replace(UNPRINTABLE, ' ') as T;
  if (Array.isArray(value)) return value.map(printable) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [printable(key), printable(inner)])) as T;
}

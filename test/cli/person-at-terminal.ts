import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { runCommandLine } from '../../bin/commands/command-line.ts';
import { processTerminal } from '../../bin/terminal/terminal.ts';
import { plainEnvironment } from './command-line.ts';

/** What a person types at a question: a line, or Ctrl-D. */
type Typed = string | { end: true };
export const CTRL_D: Typed = { end: true };

/** A part of the question, and what the person types. */
export type Answer = readonly [question: string, typed: Typed];

/** The streams of a terminal. The person answers each question when it is shown, and ends the input at one they do not expect. */
export function terminalStreams(answers: readonly Answer[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 120 });
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  const seen = { stdout: '', stderr: '', unexpected: [] as string[], left: [...answers] };
  stdout.on('data', (chunk) => {
    seen.stdout += stripVTControlCharacters(String(chunk));
  });
  stderr.on('data', (chunk) => {
    const text = stripVTControlCharacters(String(chunk));
    seen.stderr += text;
    // A note ends with a line end, a question does not.
    if (text.endsWith('\n')) return;
    const [question, typed] = seen.left.shift() ?? ['no question', CTRL_D];
    if (!text.includes(question)) seen.unexpected.push(`${text} instead of ${question}`);
    if (typeof typed === 'string' && text.includes(question)) stdin.write(`${typed}\n`);
    else stdin.end();
  });
  return { streams: { stdin, stdout, stderr }, seen };
}

export async function personAtTerminal(
  args: readonly string[],
  answers: readonly Answer[],
  environment: NodeJS.ProcessEnv = {},
) {
  const { streams, seen } = terminalStreams(answers);
  const exitCode = await runCommandLine([...args], plainEnvironment(environment), processTerminal(streams));
  return { exitCode, ...seen };
}

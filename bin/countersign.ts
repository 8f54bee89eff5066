#!/usr/bin/env node
import { EXIT } from './commands/failure.ts';
import { processTerminal } from './terminal/terminal.ts';

// `countersign runs list | head` closes the pipe early. That is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT.ok);
});
process.on('SIGINT', () => {
  // A command that stops in an orderly way listens, too.
  if (process.listenerCount('SIGINT') === 1) process.exit(EXIT.interrupted);
});

try {
  const { runCommandLine } = await import('./commands/command-line.ts');
  process.exitCode = await runCommandLine(process.argv.slice(2), process.env, processTerminal());
} catch (error) {
  // Node would exit with 1, which callers read as a negative result, such as "tampered".
  console.error(error);
  process.exitCode = EXIT.broken;
}

#!/usr/bin/env node
import { runCommandLine } from './commands/command-line.ts';
import { EXIT } from './commands/failure.ts';
import { processTerminal } from './terminal/terminal.ts';

// `countersign runs list | head` closes the pipe early; that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT.ok);
});
process.on('SIGINT', () => process.exit(EXIT.interrupted));

try {
  process.exitCode = await runCommandLine(process.argv.slice(2), process.env, processTerminal());
} catch (error) {
  // Node itself would exit with 1, which means that what was asked for is not so: tampered with, failed, refused.
  console.error(error);
  process.exitCode = EXIT.broken;
}

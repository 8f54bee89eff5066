import type { Terminal } from '../terminal/terminal.ts';
import { commandsFor } from './commands.ts';
import type { ExitCode } from './failure.ts';
import { runCommands } from './run-commands.ts';

/** Parses a command line, runs its command and returns the exit code. */
export const runCommandLine = async (
  argv: string[],
  environment: NodeJS.ProcessEnv,
  terminal: Terminal,
): Promise<ExitCode> => runCommands(await commandsFor(argv), argv, environment, terminal);

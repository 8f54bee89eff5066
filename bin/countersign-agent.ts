#!/usr/bin/env node
import { agent } from './commands/agent/agent.ts';
import { EXIT } from './commands/failure.ts';
import { runCommands } from './commands/run-commands.ts';
import { processTerminal } from './terminal/terminal.ts';

/** Only the agent, for hosts that run nothing else: a fifth of the size, and less memory. `agent` may be left out. */
const argv = process.argv.slice(2);
try {
  const words = ['agent', 'help'].includes(argv[0] ?? '') || argv[0]?.startsWith('-') ? argv : ['agent', ...argv];
  process.exitCode = await runCommands(agent, words, process.env, processTerminal());
} catch (error) {
  console.error(error);
  process.exitCode = EXIT.broken;
}

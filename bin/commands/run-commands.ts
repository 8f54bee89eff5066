import { parseArgs } from 'node:util';
import { didYouMean } from '../../lambdas/entry/did-you-mean.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { packageVersion } from '../version.ts';
import { Call, type Command, GLOBAL_OPTIONS } from './command.ts';
import { EXIT, type ExitCode, Failure, UsageError } from './failure.ts';
import { groupHelp, helpOf, overview, usageOf } from './help.ts';

/** Parses a command line, runs one of these commands and returns the exit code. */
export async function runCommands(
  commands: readonly Command[],
  argv: string[],
  environment: NodeJS.ProcessEnv,
  terminal: Terminal,
): Promise<ExitCode> {
  let nearestHelp = helpNear(
    commands,
    argv.filter((word) => !word.startsWith('-')),
  );
  try {
    // After a command it is an option of the command: the version of a workflow.
    if (argv[0] === '--version') {
      terminal.print(packageVersion());
      return EXIT.ok;
    }
    const { values, positionals } = parseArguments(commands, argv);
    const words = positionals[0] === 'help' ? positionals.slice(1) : positionals;
    const { command, group } = find(commands, words);
    nearestHelp = helpNear(commands, words);
    const wantsHelp = values.help === true || words !== positionals;
    if (wantsHelp && (command || group.length > 0 || words.length === 0)) {
      terminal.print(command ? helpOf(command) : group.length > 0 ? groupHelp(group) : overview(commands));
      return EXIT.ok;
    }
    if (!command) throw unknownCommand(commands, words, group);
    const args = words.slice(command.name.split(' ').length);
    assertAccepts(command, values, args);
    return await command.run(new Call(terminal, environment, { values, args }));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // The message comes last, next to the prompt.
    if (error instanceof UsageError && nearestHelp !== '') terminal.note(`${nearestHelp}\n`);
    terminal.note(error.message);
    return error.exitCode;
  }
}

/** The command that these words name, and all commands of its group. */
function find(
  commands: readonly Command[],
  [group = '', verb = '']: readonly string[],
): { command?: Command; group: Command[] } {
  return {
    command: commands.find(({ name }) => name === `${group} ${verb}` || name === group),
    group: commands.filter(({ name }) => name.startsWith(`${group} `)),
  };
}

/** The usage of the command, or else the commands of its group. */
function helpNear(commands: readonly Command[], words: readonly string[]): string {
  const { command, group } = find(commands, words);
  if (command) return usageOf(command);
  return group.length > 0 ? groupHelp(group) : '';
}

/** Options may precede the command, so the options of all commands are parsed together. */
function parseArguments(commands: readonly Command[], argv: string[]) {
  const all = Object.assign({}, GLOBAL_OPTIONS, ...commands.map(({ options }) => options)) as Command['options'];
  const isRepeatable = (name: string) => commands.some(({ options }) => options[name]?.repeatable);
  const options = Object.fromEntries(
    Object.entries(all).map(([name, { value }]) => [
      name,
      { type: value ? 'string' : 'boolean', multiple: isRepeatable(name) } as const,
    ]),
  );
  try {
    return parseArgs({
      args: withNegativeNumbers(argv),
      options: { ...options, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
  } catch (error) {
    if (!(error instanceof TypeError && 'code' in error)) throw error;
    const option = /--[\w-]+/.exec(error.message)?.[0] ?? '';
    if (error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      const words = argv.filter((word) => !word.startsWith('-'));
      const { command } = find(commands, words);
      const known = Object.keys({ ...(command?.options ?? all), ...GLOBAL_OPTIONS });
      const of = command ? `countersign ${command.name}: ` : '';
      throw new UsageError(`${of}${unknownOption(option.slice(2), known) || (error.message.split('. ')[0] ?? '')}`);
    }
    const [sentence = ''] = error.message.split(/[.\n]/);
    throw new UsageError(/argument (missing|is ambiguous)$/.test(sentence) ? `${option} requires a value` : sentence);
  }
}

/** `--limit -1` as `--limit=-1`: otherwise -1 is read as an option. The command then says which numbers it accepts. */
function withNegativeNumbers(argv: readonly string[]): string[] {
  const words: string[] = [];
  for (const word of argv) {
    const before = words.at(-1) ?? '';
    if (/^-\d/.test(word) && /^--[\w-]+$/.test(before) && !words.includes('--')) words.push(`${words.pop()}=${word}`);
    else words.push(word);
  }
  return words;
}

const unknownOption = (name: string, known: readonly string[]) =>
  name && `unknown option --${name}${didYouMean(name, known, (close) => `--${close}`)}`;

function assertAccepts(command: Command, values: object, args: string[]): void {
  const known = Object.keys({ ...command.options, ...GLOBAL_OPTIONS });
  const foreign = Object.keys(values).find((name) => !known.includes(name));
  if (foreign) throw new UsageError(`countersign ${command.name}: ${unknownOption(foreign, known)}`);
  const empty = Object.entries(values).find(([, value]) => [value].flat().includes(''));
  if (empty) throw new UsageError(`--${empty[0]} must not be empty; leave it out, or give it a value`);
  const missing = command.args[args.length];
  if (missing && !missing.startsWith('[')) throw new UsageError(`countersign ${command.name} requires ${missing}`);
  const surplus = /…]?$/.test(command.args.at(-1) ?? '') ? undefined : args[command.args.length];
  if (surplus !== undefined) throw new UsageError(`countersign ${command.name}: unexpected argument "${surplus}"`);
}

const SEE_ALL = 'npx countersign help lists all commands';

function unknownCommand(commands: readonly Command[], [name, verb]: readonly string[], group: Command[]): UsageError {
  if (!name) return new UsageError(`no command given; ${SEE_ALL}`);
  if (group.length === 0) {
    const groups = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
    return new UsageError(`unknown command "${name}"${didYouMean(name, groups) || `; ${SEE_ALL}`}`);
  }
  const verbs = group.map(({ name }) => name.split(' ')[1] ?? '');
  return new UsageError(
    verb
      ? `unknown command "${name} ${verb}"${didYouMean(verb, verbs) || `; ${name} has: ${verbs.join(', ')}`}`
      : `${name} requires a subcommand: ${verbs.join(', ')}`,
  );
}

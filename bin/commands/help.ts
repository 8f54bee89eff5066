import { type Command, GLOBAL_OPTIONS, type Option } from './command.ts';

export function overview(commands: readonly Command[]): string {
  return [
    'countersign: follow governed runs from the terminal',
    '',
    ...commandLines(commands),
    '',
    'For every command:',
    ...optionLines(GLOBAL_OPTIONS),
    '',
    'Exit codes: 0 fine, 1 it failed, 2 wrong usage, 3 cannot reach the system or it refuses.',
  ].join('\n');
}

export function groupHelp(commands: readonly Command[]): string {
  return [...commandLines(commands), '', 'More with --help after a command.'].join('\n');
}

export function helpOf(command: Command): string {
  return [
    usageOf(command),
    '',
    command.says,
    ...(command.details ? ['', command.details] : []),
    '',
    ...optionLines({ ...command.options, ...GLOBAL_OPTIONS }),
  ].join('\n');
}

const USAGE_COLUMNS = 90;

export function usageOf({ name, takes, options }: Command): string {
  const lines = [`usage: countersign ${[name, ...takes].join(' ')}`];
  for (const [option, { value }] of Object.entries(options)) {
    const word = `[--${option}${value ? ` ${value}` : ''}]`;
    const line = lines.pop() ?? '';
    if (line.length + word.length < USAGE_COLUMNS) lines.push(`${line} ${word}`);
    else lines.push(line, `         ${word}`);
  }
  return lines.join('\n');
}

function commandLines(commands: readonly Command[]): string[] {
  const width = Math.max(...commands.map((command) => callOf(command).length));
  return commands.map((command) => `  ${callOf(command).padEnd(width)}  ${command.says}`);
}

const callOf = ({ name, takes }: Command) => ['countersign', name, ...takes].join(' ');

function optionLines(options: Record<string, Option>): string[] {
  const named = Object.entries(options).map(
    ([name, { value, says }]) => [`--${name}${value ? ` ${value}` : ''}`, says] as const,
  );
  const width = Math.max(...named.map(([name]) => name.length));
  return named.map(([name, says]) => `  ${name.padEnd(width)}  ${says}`);
}

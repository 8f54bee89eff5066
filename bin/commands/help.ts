import { type Command, GLOBAL_OPTIONS, type Option } from './command.ts';

export function overview(commands: readonly Command[]): string {
  return [
    'countersign: governed runs and their approvals, from the terminal',
    '',
    ...commandLines(commands),
    '',
    'For every command:',
    ...optionLines({ ...GLOBAL_OPTIONS, version: { says: 'which version this is' } }),
    '',
    'Exit codes: 0 fine, 1 failed or refused, 2 wrong usage, 3 nobody answers, or the key is not taken,',
    '70 a fault of this program.',
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
    // A command's own meaning of an option goes before the one that all others share.
    ...optionLines({ ...command.options, ...GLOBAL_OPTIONS, ...command.options }),
  ].join('\n');
}

const USAGE_COLUMNS = 90;

export function usageOf({ name, takes, options }: Command): string {
  const lines = [`usage: countersign ${[name, ...takes].join(' ')}`];
  for (const [option, { value, many, required }] of Object.entries(options)) {
    const given = `--${option}${value ? ` ${value}` : ''}`;
    const word = `${required ? given : `[${given}]`}${many ? '…' : ''}`;
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
    ([name, { value, says, required }]) =>
      [`--${name}${value ? ` ${value}` : ''}`, required ? `${says}; required` : says] as const,
  );
  const width = Math.max(...named.map(([name]) => name.length));
  return named.map(([name, says]) => `  ${name.padEnd(width)}  ${says}`);
}

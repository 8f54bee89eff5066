import { wrap } from '../terminal/fit-text.ts';
import { type Command, GLOBAL_OPTIONS, type Option } from './command.ts';

export function overview(commands: readonly Command[]): string {
  return [
    'countersign: inspect and control runs, approvals, workflows, policies and evidence',
    '',
    ...commandLines(commands),
    '',
    'Options of every command:',
    ...optionLines({ ...GLOBAL_OPTIONS, version: { description: 'print the version' } }),
    '',
    'Exit codes: 0 success; 1 negative result or denied; 2 wrong usage; 3 the API does not respond or',
    'rejects the credential; 70 a bug in this program.',
  ].join('\n');
}

export function groupHelp(commands: readonly Command[]): string {
  return [...commandLines(commands), '', 'For details, add --help to a command.'].join('\n');
}

export function helpOf(command: Command): string {
  return [
    usageOf(command),
    '',
    command.description,
    ...(command.details ? ['', command.details] : []),
    '',
    // Own options come first; an own option replaces a global one of the same name.
    ...optionLines({ ...command.options, ...globalOptions(command), ...command.options }),
  ].join('\n');
}

function globalOptions({ offline }: Command): Record<string, Option> {
  if (!offline) return GLOBAL_OPTIONS;
  const { url: _url, key: _key, ...others } = GLOBAL_OPTIONS;
  return others;
}

const USAGE_COLUMNS = 90;
const HELP_COLUMNS = 100;

export function usageOf({ name, args, options }: Command): string {
  const lines = [`usage: countersign ${[name, ...args].join(' ')}`];
  for (const [option, { value, repeatable, required }] of Object.entries(options)) {
    const given = `--${option}${value ? ` ${value}` : ''}`;
    const word = `${required ? given : `[${given}]`}${repeatable ? '…' : ''}`;
    const line = lines.pop() ?? '';
    if (line.length + word.length < USAGE_COLUMNS) lines.push(`${line} ${word}`);
    else lines.push(line, `         ${word}`);
  }
  return lines.join('\n');
}

function commandLines(commands: readonly Command[]): string[] {
  return aligned(
    commands.map(({ name, args, description }) => [['countersign', name, ...args].join(' '), description]),
  );
}

function optionLines(options: Record<string, Option>): string[] {
  return aligned(
    Object.entries(options).map(([name, { value, description, required }]) => [
      `--${name}${value ? ` ${value}` : ''}`,
      required ? `${description} (required)` : description,
    ]),
  );
}

function aligned(rows: [string, string][]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.flatMap(([left, right]) =>
    wrap(right, HELP_COLUMNS - width - 4).map((line, index) => `  ${(index === 0 ? left : '').padEnd(width)}  ${line}`),
  );
}

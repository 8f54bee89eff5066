import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { Page } from '../../terminal/page.ts';
import { type Column, table } from '../../terminal/table.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, Failure } from '../failure.ts';
import type { DescribedField, DescribedTool } from './describe-tool.ts';

const COLUMNS: readonly Column[] = [
  { title: 'TOOL' },
  { title: 'KIND', shrink: 'wrap' },
  { title: 'DOES', shrink: 'wrap' },
];
const FIELD_COLUMNS: readonly Column[] = [
  { title: 'FIELD' },
  { title: 'TYPE', shrink: 'wrap' },
  { title: '' },
  { title: 'MEANING', shrink: 'wrap' },
];

export const tools: Command = {
  name: 'tools',
  args: ['[NAME]'],
  description: 'list the tools of steps, or show one with an example',
  offline: true,
  options: {},
  async run(call) {
    // Loaded here: connectors would slow down the start of every other command.
    const { allTools, describeTool } = await import('./describe-tool.ts');
    const name = call.arg(0);
    const names = allTools();
    if (name !== '' && !names.includes(name)) {
      const related = names.filter((each) => each.startsWith(name.split('.')[0] ?? name));
      const hint = didYouMean(name, names) || `; tools: ${(related.length > 0 ? related : names).join(', ')}`;
      throw new Failure(EXIT.usage, `unknown tool "${name}"${hint}`);
    }
    const shown = (name === '' ? names : [name]).flatMap((each) => describeTool(each) ?? []);
    const [only] = shown;
    if (call.json) call.printJson(name === '' ? { tools: shown } : only);
    else if (name === '' || !only) printTools(call, shown);
    else printTool(call, only);
    return EXIT.ok;
  },
};

function printTools({ terminal }: Call, all: readonly DescribedTool[]): void {
  const rows = all.map((tool) => [tool.name, kindOf(tool), tool.summary]);
  for (const line of table(COLUMNS, rows, terminal)) terminal.print(line);
  terminal.note('npx countersign tools NAME shows inputs, outputs and an example');
}

/** `reads`; `writes, medium risk, reversible`. */
export function kindOf({ effect, risk, reversible, destructive }: DescribedTool): string {
  if (effect === null) return 'calls no target';
  if (effect === 'read') return 'reads';
  return [
    'writes',
    `${risk} risk`,
    ...(reversible ? ['reversible'] : []),
    ...(destructive ? ['destructive'] : []),
  ].join(', ');
}

const EFFECTS: Readonly<Record<string, string>> = {
  read: 'changes nothing',
  natural: 'making it twice is the same as once',
  probe: 'carries a mark, by which a lost write is found',
  opaque: 'if the response is lost, a human must find out what happened',
};

function printTool({ terminal }: Call, tool: DescribedTool): void {
  const page = new Page(terminal);
  page.title(tool.name, { text: kindOf(tool) });
  page.line(tool.summary);
  page.blank();
  if (tool.effect !== null) page.field('effect', `${tool.effect}: ${EFFECTS[tool.effect] ?? ''}`);
  page.field('connection', tool.connection ?? '-');
  page.blank();
  printFields(terminal, 'with', tool.inputs);
  if (tool.effect !== null) printFields(terminal, 'output', tool.outputs);
  terminal.print('');
  terminal.print(tool.example);
}

function printFields(terminal: Call['terminal'], heading: string, fields: readonly DescribedField[]): void {
  if (fields.length === 0) return;
  const rows = fields.map(({ name, type, required, description }) => [
    `${heading}.${name}`,
    type.replaceAll('`', ''),
    heading === 'with' && required ? 'required' : '',
    description.replaceAll('`', ''),
  ]);
  for (const line of table(FIELD_COLUMNS, rows, terminal)) terminal.print(line);
}

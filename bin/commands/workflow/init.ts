import { existsSync, mkdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, Failure, UsageError } from '../failure.ts';
import { writeFile } from '../read-file.ts';

const SOURCES = ['github', 'servicenow', 'manual'] as const;
type Source = (typeof SOURCES)[number];

export const workflowInit: Command = {
  name: 'workflow init',
  args: ['[NAME]'],
  description: 'create a workflow with its automation and a test case',
  details: [
    'Writes NAME.yaml, NAME.automation.yaml and NAME.test.yaml. On a terminal it asks for what is missing.',
    'Then: workflow test NAME.test.yaml, workflow publish NAME.yaml, automations put NAME.automation.yaml.',
  ].join('\n'),
  offline: true,
  options: {
    tool: { value: 'TOOL', description: 'the tool of the first step; see countersign tools' },
    source: { value: 'SOURCE', description: `what starts it: ${SOURCES.join(', ')}` },
    out: { value: 'FOLDER', description: 'where to write the files (default: this folder)' },
  },
  async run(call) {
    const { allTools } = await import('./describe-tool.ts');
    const { newWorkflow } = await import('./new-workflow.ts');
    const name = await answer(call, call.arg(0), 'Name of the workflow', 'my-workflow');
    if (!/^[a-z][a-z0-9-]{0,62}$/.test(name)) {
      throw new UsageError(
        `"${name}" is not a name; use lower-case letters, digits and dashes, and start with a letter`,
      );
    }
    const source = await choice(call, 'source', 'What starts it', SOURCES, 'github');
    const tool = await choice(call, 'tool', 'Tool of the first step', allTools(), DEFAULT_TOOL[source]);
    const folder = call.option('out') ?? '.';
    const files = await newWorkflow({
      name,
      source,
      tool,
      ...(existsSync(SCHEMAS) && { schemas: schemasFrom(folder) }),
    });
    const paths = Object.keys(files).map((file) => join(folder, file));
    const existing = paths.filter((path) => existsSync(path));
    if (existing.length > 0)
      throw new Failure(EXIT.usage, `${existing.join(', ')} already exists; nothing was written`);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFile(join(folder, file), text);
    if (call.json) call.printJson({ name, files: paths });
    else {
      for (const path of paths) call.terminal.print(path);
      call.terminal.note(`next: npx countersign workflow test ${paths.at(-1)}`);
    }
    return EXIT.ok;
  },
};

const SCHEMAS = join(import.meta.dirname, '..', '..', '..', 'schemas');

const schemasFrom = (folder: string): string => relative(resolve(folder), SCHEMAS).replaceAll('\\', '/');

const DEFAULT_TOOL: Record<Source, string> = {
  github: 'github.labels.add',
  servicenow: 'servicenow.incident.add_work_note',
  manual: 'slack.message.post',
};

async function choice<Choice extends string>(
  call: Call,
  option: string,
  question: string,
  choices: readonly Choice[],
  byDefault: NoInfer<Choice>,
): Promise<Choice> {
  const given = await answer(call, call.option(option) ?? '', question, byDefault);
  const found = choices.find((each) => each === given);
  if (found !== undefined) return found;
  const hint = didYouMean(given, choices) || `; choose from ${choices.join(', ')}`;
  throw new UsageError(`--${option} "${given}" is unknown${hint}`);
}

/** What was given; else, on a terminal, what the person types; else the default. */
async function answer({ terminal, json }: Call, given: string, question: string, byDefault: string): Promise<string> {
  if (given !== '' || json) return given || byDefault;
  return (await terminal.ask(`${question} [${byDefault}]: `))?.trim() || byDefault;
}

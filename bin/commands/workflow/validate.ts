import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FileProblem } from '../../../lambdas/workflow/parse-workflow.ts';
import type { Workflow } from '../../../lambdas/workflow/workflow.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { readFile } from '../read-file.ts';

export const workflowValidate: Command = {
  name: 'workflow validate',
  args: ['FILE…'],
  description: 'check workflow files offline',
  details: 'Prints each problem as file:line: path: message. Exit code: 1 if there are problems.',
  offline: true,
  options: {},
  async run(call) {
    const checked: CheckedFile[] = [];
    for (const file of call.args) checked.push(await checkWorkflowFile(file));
    if (call.json) call.printJson(checked.map(inJson));
    else for (const each of checked) printChecked(call, each);
    return checked.some((each) => 'problems' in each) ? EXIT.failed : EXIT.ok;
  },
};

export type CheckedFile = { file: string; text: string } & (
  | { workflow: Workflow }
  | { problems: (FileProblem & { shown: string })[] }
);

const NAME = /^[a-z][a-z0-9-]*$/;
/** A called workflow is looked for next to the file, under its name. */
const CALLED_DEEP_MAX = 6;

/** Applies the same rules as the server. */
export async function checkWorkflowFile(file: string, depth = 0): Promise<CheckedFile> {
  // Loaded here: expressions and connectors would slow down the start of every other command.
  const { openWorkflow, problemLine } = await import('../../../lambdas/workflow/parse-workflow.ts');
  const text = readFile(file).toString('utf8');
  const opened = openWorkflow(text);
  const called = new Map<string, { version: number; workflow: Workflow }>();
  for (const call of opened.calls()) {
    const beside = join(dirname(file), `${call.workflow}.yaml`);
    if (!NAME.test(call.workflow) || !existsSync(beside) || depth >= CALLED_DEEP_MAX) continue;
    const found = await checkWorkflowFile(beside, depth + 1);
    if ('problems' in found) return found;
    called.set(`${call.workflow}@${call.version ?? 'newest'}`, {
      version: call.version ?? 1,
      workflow: found.workflow,
    });
  }
  const result = opened.read(called);
  if ('workflow' in result) return { file, text, workflow: result.workflow };
  return { file, text, problems: result.problems.map((each) => ({ ...each, shown: problemLine(file, each) })) };
}

/** Before a file is sent to the server, which knows the workflows that it calls. */
export async function checkBeforeSending(file: string): Promise<CheckedFile | { file: string; text: string }> {
  const checked = await checkWorkflowFile(file);
  if (!('problems' in checked)) return checked;
  const { NOT_LOOKED_UP } = await import('../../../lambdas/workflow/expand-workflow.ts');
  const problems = checked.problems.filter(({ message }) => message !== NOT_LOOKED_UP);
  return problems.length > 0 ? { ...checked, problems } : { file: checked.file, text: checked.text };
}

function inJson(checked: CheckedFile) {
  if ('workflow' in checked) return { file: checked.file, valid: true, name: checked.workflow.name, problems: [] };
  const problems = checked.problems.map(({ line, path, message }) => ({ line, path, message }));
  return { file: checked.file, valid: false, problems };
}

export function printChecked({ terminal }: Call, checked: CheckedFile): void {
  if ('workflow' in checked) {
    const { name, steps } = checked.workflow;
    terminal.print(
      printable(`${checked.file}: ${name} is valid (${steps.length === 1 ? '1 step' : `${steps.length} steps`})`),
    );
    return;
  }
  for (const { shown } of checked.problems) terminal.print(printable(shown));
}

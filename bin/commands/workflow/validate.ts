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

/** Applies the same rules as the server. */
export async function checkWorkflowFile(file: string): Promise<CheckedFile> {
  // Loaded here: expressions and connectors would slow down the start of every other command.
  const { problemLine, readWorkflow } = await import('../../../lambdas/workflow/parse-workflow.ts');
  const text = readFile(file).toString('utf8');
  const result = readWorkflow(text);
  if ('workflow' in result) return { file, text, workflow: result.workflow };
  return { file, text, problems: result.problems.map((each) => ({ ...each, shown: problemLine(file, each) })) };
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

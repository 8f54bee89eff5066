import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { type CheckedFile, checkWorkflowFile } from './workflow-file.ts';

export const workflowValidate: Command = {
  name: 'workflow validate',
  takes: ['FILE…'],
  says: 'check workflow files, without any server',
  details: 'Each mistake is shown as file:line: where: what to do. Exit code 1 if there is any.',
  options: {},
  async run(call) {
    const checked: CheckedFile[] = [];
    for (const file of call.positionals) checked.push(await checkWorkflowFile(file));
    if (call.json) call.printJson(checked.map(inJson));
    else for (const each of checked) printChecked(call, each);
    return checked.some((each) => 'problems' in each) ? EXIT.failed : EXIT.ok;
  },
};

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

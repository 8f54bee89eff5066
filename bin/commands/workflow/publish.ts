import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { printChecked } from './validate.ts';
import { checkWorkflowFile } from './workflow-file.ts';

export const workflowPublish: Command = {
  name: 'workflow publish',
  takes: ['FILE'],
  says: 'publish a workflow file as its next version',
  details: 'Versions never change; a run keeps the one it began with. The newest again changes nothing.',
  options: { automation: { value: 'NAME', says: 'let this automation run the version from now on' } },
  async run(call) {
    const checked = await checkWorkflowFile(call.positional(0));
    if ('problems' in checked) {
      printChecked(call, checked);
      return EXIT.failed;
    }
    const api = call.api();
    const wanted = call.text('automation');
    // An automation that is not there is found out before anything is published.
    const automation = wanted === undefined ? undefined : await api.automation(wanted);
    const published = await api.publishWorkflow(checked.text);
    const saved = automation && (await api.saveAutomation({ ...automation, workflow: published }));
    if (call.json) call.printJson({ ...published, ...(saved && { automation: saved }) });
    else {
      call.terminal.print(printable(`${published.name} is published as version ${published.version}`));
      if (saved) call.terminal.print(printable(`${saved.name} runs it within ${saved.effectiveWithinSeconds} s`));
    }
    return EXIT.ok;
  },
};

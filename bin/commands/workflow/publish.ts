import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { checkBeforeSending, printChecked } from './validate.ts';

export const workflowPublish: Command = {
  name: 'workflow publish',
  args: ['FILE'],
  description: 'publish a workflow file as its next version',
  details:
    'A published version never changes, and a run keeps the version it started with.\nPublishing the newest version again changes nothing.',
  options: { automation: { value: 'NAME', description: 'make this automation run the new version' } },
  async run(call) {
    const checked = await checkBeforeSending(call.arg(0));
    if ('problems' in checked) {
      printChecked(call, checked);
      return EXIT.failed;
    }
    const api = call.api();
    const wanted = call.option('automation');
    // Before publishing: an unknown automation must not leave a published version behind.
    const automation =
      wanted === undefined ? undefined : await api.call('GET /api/v1/automations/{name}', { params: { name: wanted } });
    const { isNew, body: published } = await api.create('POST /api/v1/workflows', { body: checked.text });
    const saved =
      automation &&
      (await api.call('PUT /api/v1/automations/{name}', {
        params: { name: automation.name },
        body: { ...automation, workflow: { name: published.name, version: published.version } },
      }));
    if (call.json) call.printJson({ ...published, isNew, ...(saved && { automation: saved }) });
    else {
      const { name, version } = published;
      const unchanged = `${name} version ${version} has this content; nothing was published`;
      call.terminal.print(printable(isNew ? `published ${name} version ${version}` : unchanged));
      for (const warning of published.warnings) call.terminal.note(printable(`warning: ${warning}`));
      if (saved) call.terminal.print(printable(`${saved.name} uses it within ${saved.effectiveWithinSeconds} s`));
    }
    return EXIT.ok;
  },
};

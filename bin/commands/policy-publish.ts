import type { Command } from './command.ts';
import { EXIT } from './failure.ts';
import { readPolicyFolder } from './policy-folder.ts';

export const policyPublish: Command = {
  name: 'policy publish',
  takes: ['FOLDER'],
  says: "make a folder's policies the tenant's own",
  details:
    'They replace what was published before; try them first with policy test and policy replay.\n' +
    'Warm functions take them up within a minute; a write that rests on an approval, at once.',
  options: {},
  async run(call) {
    const { hash } = await call.api().publishPolicies(readPolicyFolder(call.positional(0)));
    if (call.json) call.printJson({ hash });
    else call.terminal.print(`published: ${hash}`);
    return EXIT.ok;
  },
};

import { type Column, table } from '../../terminal/table.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';

const COLUMNS: readonly Column[] = [{ title: '' }, { title: 'PROFILE' }, { title: 'URL' }, { title: 'CREDENTIAL' }];

export const profiles: readonly Command[] = [
  {
    name: 'profiles list',
    args: [],
    description: 'list the stages where you signed in',
    options: {},
    offline: true,
    async run(call) {
      const all = call.profiles.list().map(({ name, isCurrent, profile: { url, signIn } }) => ({
        name,
        url,
        isCurrent,
        credential: signIn ? `sign-in at ${signIn.issuer}` : 'API key',
      }));
      if (call.json) call.printJson({ profiles: all });
      else if (all.length === 0) call.terminal.note('no profiles; countersign login URL creates one');
      else {
        const rows = all.map(({ name, url, isCurrent, credential }) => [isCurrent ? '*' : '', name, url, credential]);
        for (const line of table(COLUMNS, printable(rows), call.terminal)) call.terminal.print(line);
      }
      return EXIT.ok;
    },
  },
  {
    name: 'profiles use',
    args: ['NAME'],
    description: 'make a profile the default',
    options: {},
    offline: true,
    async run(call) {
      call.profiles.use(call.arg(0));
      if (call.json) call.printJson({ current: call.arg(0) });
      else call.terminal.print(`commands now use the profile ${call.arg(0)}`);
      return EXIT.ok;
    },
  },
];

import { Page } from '../../terminal/page.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';

export const whoami: Command = {
  name: 'whoami',
  args: [],
  description: 'show who you are, your rights and your credential',
  options: {},
  async run(call) {
    const me = await call.api().call('GET /api/v1/me');
    if (call.json) {
      call.printJson(me);
      return EXIT.ok;
    }
    const { tenant, person, name, machine, role, tier, groups, rights, credential } = printable(me);
    const page = new Page(call.terminal);
    page.title(name === undefined ? person : `${name} (${person})`, { text: machine ? `machine, ${role}` : role });
    page.blank();
    page.field('tenant', tenant);
    page.field('stage', call.url);
    if (role === 'approver') page.field('approves', `up to ${tier}`);
    if (groups.length > 0) page.field('groups', groups.join(', '));
    const expires = credential.expiresAt === undefined ? '' : `, expires ${credential.expiresAt}`;
    const kind = credential.kind === 'oidc' ? 'sign-in with' : 'API key';
    page.field('credential', `${kind} ${credential.name ?? ''}${expires}`);
    if (credential.issuedBy !== undefined) page.field('', `created by ${credential.issuedBy}, so it cannot approve`);
    page.field('rights', rights.join(', '));
    return EXIT.ok;
  },
};

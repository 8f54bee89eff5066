import type { RequestFor, ResponseFrom } from '../../../client/api-client.ts';
import { didYouMean } from '../../../lambdas/entry/did-you-mean.ts';
import { Page } from '../../terminal/page.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Call, Command } from '../command.ts';
import { EXIT, UsageError } from '../failure.ts';
import { readDefinition } from '../read-file.ts';

type Profile = ResponseFrom<'GET /api/v1/profiles/{name}'>;
type ProfileName = Profile['name'];
type Lists = NonNullable<RequestFor<'PUT /api/v1/profiles/{name}'>['body']>;

export const PROFILE_NAMES: readonly ProfileName[] = ['prod-critical', 'prod-standard', 'staging-standard', 'dev-flex'];

export const agentProfiles: readonly Command[] = [
  {
    name: 'agents profiles',
    args: [],
    description: 'show which commands each profile allows and denies',
    options: {},
    async run(call) {
      const { profiles } = await call.api().call('GET /api/v1/profiles');
      if (call.json) call.printJson({ profiles });
      else for (const profile of printable(profiles)) printProfile(call, profile);
      return EXIT.ok;
    },
  },
  {
    name: 'agents set-profile',
    args: ['FILE'],
    description: 'replace the lists of a profile from a YAML or JSON file',
    details:
      'name: prod-standard\n' +
      'allow:\n' +
      '  - { executable: /usr/bin/systemctl, args: [restart, "payments-*"] }\n' +
      'deny: []                              # optional\n' +
      'Without args, any arguments are allowed. A * stands for any characters within one argument.',
    options: {},
    async run(call) {
      const { id, fields } = await readDefinition<Lists>(call.arg(0), 'name', 'a profile');
      const params = { name: profileName(id) };
      const saved = await call.api().call('PUT /api/v1/profiles/{name}', { params, body: fields });
      if (call.json) call.printJson(saved);
      else call.terminal.print(`saved ${saved.name}; it takes effect within ${saved.effectiveWithinSeconds} seconds`);
      return EXIT.ok;
    },
  },
];

function profileName(given: string): ProfileName {
  const found = PROFILE_NAMES.find((each) => each === given);
  if (found) return found;
  const known = didYouMean(given, PROFILE_NAMES) || `; there are: ${PROFILE_NAMES.join(', ')}`;
  throw new UsageError(`"${given}" is not a profile${known}`);
}

function printProfile(
  { terminal }: Call,
  { name, environment, allow, deny, rollbackRequired, builtIn }: Profile,
): void {
  const page = new Page(terminal);
  page.title(name, { text: builtIn ? 'built in' : 'defined' });
  page.field('for', `${environment}${rollbackRequired ? '; each command needs a rollback command' : ''}`);
  if (allow === null) page.field('allows', 'everything that it does not deny');
  else page.field('allows', allow.map(patternText).join('; ') || 'nothing');
  page.field('denies', deny.map(patternText).join('; ') || '-');
  page.blank();
}

const patternText = ({ executable, args }: { executable: string; args?: string[] }): string =>
  args === undefined ? `${executable} …` : [executable, ...args].join(' ');

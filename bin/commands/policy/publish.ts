import type { TenantPolicies } from '../../../lambdas/policy/policy.ts';
import type { PublishedPolicies } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
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
    const policies = readPolicyFolder(call.positional(0));
    const published = await call.api().publishPolicies(policies);
    if (call.json) call.printJson(published);
    else for (const line of publishedInWords(policies.engine, printable(published))) call.terminal.print(line);
    return EXIT.ok;
  },
};

function publishedInWords(engine: TenantPolicies['engine'], { hash, policies, replaced }: PublishedPolicies): string[] {
  const now = engine === 'rego' ? 'a compiled Rego policy' : listed(policies);
  const before = 'problems' in replaced ? 'policies that could not decide' : listed(replaced.policies);
  const isSame = 'hash' in replaced && replaced.hash === hash;
  return [`published ${now}`, isSame ? 'the same was published before' : `before it was ${before}`, `hash ${hash}`];
}

function listed(policies: readonly string[]): string {
  if (policies.length === 0) return 'no policy beside those that ship';
  return `${policies.length} ${policies.length === 1 ? 'policy' : 'policies'}: ${policies.join(', ')}`;
}

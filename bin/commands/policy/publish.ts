import type { TenantPolicies } from '../../../lambdas/policy/policy.ts';
import type { PublishedPolicies } from '../../client/api-client.ts';
import { printable } from '../../terminal/terminal.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../failure.ts';
import { readPolicyFolder } from './policy-folder.ts';

export const policyPublish: Command = {
  name: 'policy publish',
  args: ['FOLDER'],
  description: "publish a folder as the tenant's policies",
  details:
    'Replaces the published policies. Check the folder first with policy test and policy replay.\n' +
    'The new policies apply within a minute, and immediately to a write that was approved.\n' +
    'In a prod stage, a second owner must confirm policies that do more than add forbids.',
  options: {},
  async run(call) {
    const policies = readPolicyFolder(call.arg(0));
    const published = await call.api().call('PUT /api/v1/policies', { body: policies });
    if (call.json) call.printJson(published);
    else if ('pending' in published) {
      const { pending, next } = printable(published);
      call.terminal.print(`not published yet: this ${pending.widens.join(', ')}`);
      call.terminal.print(next);
    } else for (const line of publishedText(policies.engine, printable(published))) call.terminal.print(line);
    return EXIT.ok;
  },
};

function publishedText(engine: TenantPolicies['engine'], { hash, policies, replaced }: PublishedPolicies): string[] {
  const now = engine === 'rego' ? 'a compiled Rego policy' : listed(policies);
  const before = 'problems' in replaced ? 'invalid policies' : listed(replaced.policies);
  const isSame = 'hash' in replaced && replaced.hash === hash;
  return [
    `published ${now}`,
    isSame ? 'unchanged: the same policies were published before' : `replaced ${before}`,
    `hash ${hash}`,
  ];
}

function listed(policies: readonly string[]): string {
  if (policies.length === 0) return 'no policies (the shipped ones remain)';
  return `${policies.length} ${policies.length === 1 ? 'policy' : 'policies'}: ${policies.join(', ')}`;
}

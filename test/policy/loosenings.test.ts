import { expect, it } from 'vitest';
import { CedarPolicies } from '../../lambdas/policy/cedar-policies.ts';
import { CedarRuntime, loadCedar } from '../../lambdas/policy/cedar-runtime.ts';
import { loosenings } from '../../lambdas/policy/loosenings.ts';
import { OpaPolicies } from '../../lambdas/policy/opa-policies.ts';
import { NO_TENANT_POLICIES, type TenantPolicies } from '../../lambdas/policy/policy.ts';
import { readShippedPolicies } from '../../lambdas/policy/shipped-policies.ts';
import { compiledRego } from './rego.ts';

const shipped = readShippedPolicies();
const engines = {
  cedar: new CedarPolicies(new CedarRuntime(loadCedar, () => shipped.schema), () => shipped),
  rego: new OpaPolicies(),
};
const cedar = (...policies: string[]): TenantPolicies =>
  policies.length === 0 ? NO_TENANT_POLICIES : { engine: 'cedar', files: { 'mine.cedar': policies.join('\n') } };
const FREEZE = '@id("freeze") forbid (principal, action, resource) when { resource.risk == Risk::"high" };';
const WIDER_FREEZE = '@id("freeze") forbid (principal, action, resource);';
const UNNAMED = 'forbid (principal, action, resource in Connector::"slack");';
const ASK = '@id("ask") @quorum("2") permit (principal, action == Action::"executeWithApproval", resource);';
const ASK_ONE = ASK.replace('@quorum("2")', '@quorum("1")');

it.each([
  ['nothing', cedar(FREEZE, ASK), cedar(FREEZE, ASK)],
  ['a forbid more', cedar(ASK), cedar(ASK, FREEZE)],
  ['forbids instead of none', cedar(), cedar(FREEZE, UNNAMED)],
  ['the order, the layout, comments', cedar(FREEZE, ASK), cedar('// New.', ASK, FREEZE.replaceAll(' ', '\n'))],
  ['the line of a policy without an id', cedar(UNNAMED), cedar('// New.', UNNAMED)],
  ['nothing in a compiled policy', compiledRego('decision'), compiledRego('decision')],
])('nothing is loosened by %s', async (_name, before, after) => {
  expect(await loosenings(engines, before, after)).toEqual([]);
});

it.each([
  ['a removed forbid', cedar(FREEZE, ASK), cedar(ASK), ['removes the forbid freeze']],
  ['a changed forbid', cedar(FREEZE), cedar(WIDER_FREEZE), ['changes the forbid freeze']],
  ['an added permit', cedar(FREEZE), cedar(FREEZE, ASK), ['adds the permit ask']],
  ['a lower quorum', cedar(ASK), cedar(ASK_ONE), ['changes the permit ask']],
  [
    'a forbid that becomes a permit',
    cedar(FREEZE),
    cedar(ASK.replace('"ask"', '"freeze"')),
    ['changes the forbid freeze'],
  ],
  ['another engine', cedar(FREEZE), compiledRego('decision'), ['adds, replaces or removes a compiled policy']],
  ['invalid policies', cedar('permit ('), cedar(FREEZE), [expect.stringContaining('invalid policies')]],
])('a second owner learns about %s', async (_name, before, after, sentences) => {
  expect(await loosenings(engines, before, after)).toEqual(sentences);
});

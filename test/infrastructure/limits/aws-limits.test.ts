import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { FIREWALL_RULES } from '../../../lib/console/firewall.ts';
import { StageConfig } from '../../../lib/stage-config.ts';
import { apiDefinitions, httpRoutes } from '../../../local/api-gateway/http-routes.ts';
import { type Assembly, readAssembly } from '../../../local/template/synthesize.ts';
import { type CloudFormationTemplate, type ResolvedStack, resolveTemplate } from '../../../local/template/template.ts';
import { networkTests } from '../network-tests.ts';
import { LIMITS } from './aws-limits.ts';
import { LARGEST, STAGE } from './largest-stage.ts';

/** Names of regions and accounts differ in length, so nothing may use a limit completely. */
const USABLE = 0.9;

let assembly: Assembly;
let stack: ResolvedStack;
let firewall: CloudFormationTemplate;
beforeAll(() => {
  const { largest, firewall: part } = inject('assemblies');
  assembly = readAssembly(largest, STAGE);
  stack = resolveTemplate(assembly.template, { stackName: assembly.stackName });
  firewall = JSON.parse(readFileSync(join(part, 'Firewall.template.json'), 'utf8'));
});

it('the settings reject a larger stage', () => {
  expect(StageConfig.safeParse(LARGEST).success).toBe(true);
  for (const [list, one] of [
    ['tenants', 'one-more'],
    ['formerTenants', 'one-more'],
  ] as const) {
    expect(StageConfig.safeParse({ ...LARGEST, [list]: [...LARGEST[list], one] }).success).toBe(false);
  }
  const keys = [{ name: 'oldest', retiredOn: '2019-01-01' }, ...LARGEST.evidenceKeys];
  expect(StageConfig.safeParse({ ...LARGEST, evidenceKeys: keys }).success).toBe(false);
});

it('the sealer may set an expiry only if the stage lets finished runs expire', () => {
  const [seal] = stack
    .ofType('AWS::Lambda::Function')
    .filter(({ logicalId }) => logicalId.startsWith('EvidenceVaultSeal'));
  expect(seal?.properties.Environment).toMatchObject({ Variables: { FINISHED_RUN_RETENTION_DAYS: '36500' } });
  const roles = stack.ofType('AWS::IAM::Role').filter(({ logicalId }) => logicalId.startsWith('EvidenceVaultSeal'));
  expect(JSON.stringify(roles.map(({ properties }) => properties.Policies))).toContain('dynamodb:UpdateItem');
});

it('only a function without a route signs with retired keys, to introduce their successors to agents', () => {
  const keyIds = stack.ofType('AWS::KMS::Key').map(({ logicalId }) => logicalId);
  const signs = Object.entries(assembly.template.Resources ?? {}).flatMap(([id, { Type, Properties }]) => {
    const policies = Type === 'AWS::IAM::Role' ? ((Properties?.Policies ?? []) as { PolicyDocument: unknown }[]) : [];
    const statements = policies.flatMap(
      ({ PolicyDocument }) => (PolicyDocument as { Statement: { Action: unknown; Resource: unknown }[] }).Statement,
    );
    const keys = statements
      .filter(({ Action }) => [Action].flat().includes('kms:Sign'))
      .flatMap(({ Resource }) => keyIds.filter((key) => JSON.stringify(Resource).includes(key)));
    return keys.length > 0 ? [{ id, keys }] : [];
  });
  const retired = signs.filter(({ keys }) => keys.length > 1);
  expect(retired.map(({ id }) => id)).toEqual([expect.stringMatching(/^AgentApiIntroduce/)]);
  expect(retired[0]?.keys).toHaveLength(9);
  const current = new Set(signs.filter(({ keys }) => keys.length === 1).flatMap(({ keys }) => keys));
  expect([...current].filter((key) => retired[0]?.keys.includes(key))).toEqual([]);
  const routed = apiDefinitions(stack).flatMap(httpRoutes);
  const handlers = new Set(routed.map(({ functionArn }) => stack.byArn(functionArn)?.logicalId.slice(0, -8)));
  expect(handlers).toContain('AgentApiWork');
  expect(handlers).not.toContain('AgentApiIntroduce');
});

describe('the largest stage, with every setting, stays within the limits of AWS', () => {
  it.each(LIMITS.map((limit) => [limit.of, limit.most, limit] as const))('%s: %i', (_of, _most, limit) => {
    const sizes = limit.sizes({ assembly, stack, firewall });
    expect(sizes.length, 'nothing was measured').toBeGreaterThan(0);
    const usable = limit.isExact ? limit.most : limit.most * USABLE;
    const above = sizes.filter(([, size]) => size > usable).map(([name, size]) => `${name} has ${size}`);
    expect(above, `the limit is ${limit.most} (${limit.source}): ${limit.advice}`).toEqual([]);
  });

  it('names a source and a way out for each limit', () => {
    for (const { source, advice } of LIMITS) {
      expect(source).toMatch(/^https:\/\/docs\.aws\.amazon\.com\//);
      expect(advice.length).toBeGreaterThan(10);
    }
    expect(new Set(LIMITS.map(({ of }) => of)).size).toBe(LIMITS.length);
  });
});

describe('the web ACL of the part `firewall`', () => {
  interface Rule {
    Name: string;
    Priority: number;
    Action?: object;
    Statement: {
      RateBasedStatement?: { Limit: number };
      ManagedRuleGroupStatement?: { RuleActionOverrides?: { Name: string }[] };
    };
    VisibilityConfig: { SampledRequestsEnabled: boolean };
  }
  const acl = () => {
    const [resource, ...others] = Object.values(firewall.Resources ?? {});
    expect(others).toEqual([]);
    return resource?.Properties as { Name: string; Scope: string; Rules: Rule[] };
  };

  it('is for CloudFront, has the name of the stage, and as many rules as the bill says', () => {
    expect(acl()).toMatchObject({ Name: `countersign-${STAGE}`, Scope: 'CLOUDFRONT' });
    expect(acl().Rules).toHaveLength(FIREWALL_RULES);
    expect(new Set(acl().Rules.map(({ Priority }) => Priority)).size).toBe(FIREWALL_RULES);
    expect(firewall.Outputs).toHaveProperty('WebAclArn');
  });

  it('blocks an address that sends too much', () => {
    const [rate] = acl().Rules.filter(({ Statement }) => Statement.RateBasedStatement);
    expect(rate).toMatchObject({ Action: { Block: {} }, Statement: { RateBasedStatement: { Limit: 20_000 } } });
  });

  it('blocks no webhook for its size or its text, and shows no request to people who read samples', () => {
    const counted = acl().Rules.flatMap(
      ({ Statement }) => Statement.ManagedRuleGroupStatement?.RuleActionOverrides?.map(({ Name }) => Name) ?? [],
    );
    expect(counted).toEqual(
      expect.arrayContaining(['SizeRestrictions_BODY', 'CrossSiteScripting_BODY', 'Log4JRCE_BODY', 'ReactJSRCE_BODY']),
    );
    expect(acl().Rules.filter(({ VisibilityConfig }) => VisibilityConfig.SampledRequestsEnabled)).toEqual([]);
  });
});

networkTests(() => ({ assembly, stack }));

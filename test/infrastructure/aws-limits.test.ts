import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StageConfig } from '../../lib/stage-config.ts';
import { apiDefinitions, httpRoutes } from '../../local/api-gateway/http-routes.ts';
import { type Assembly, synthesize } from '../../local/template/synthesize.ts';
import { type ResolvedStack, resolveTemplate } from '../../local/template/template.ts';
import { temporaryFolder } from '../local/cloud/wire.ts';

/** Names of regions and accounts differ in length, so nothing may use a limit completely. */
const USABLE = 0.9;

const letters = (count: number, from: string) =>
  Array.from({ length: count }, (_, at) => from.repeat(40 - String(at).length) + at);

/** The largest stage that the settings allow. */
const LARGEST = {
  kind: 'prod',
  tenants: letters(20, 't'),
  formerTenants: letters(20, 'f'),
  models: Array.from({ length: 20 }, (_, at) => `eu.anthropic.claude-some-long-model-name-20260101-v${at}:0`),
  evidenceRetentionDays: 36_500,
  finishedRunRetentionDays: 36_500,
  evidenceKeys: Array.from({ length: 10 }, (_, at) => ({
    name: `${'k'.repeat(30)}${at}`,
    ...(at < 9 && { retiredOn: `20${20 + at}-01-01` }),
  })),
};
const STAGE = 's'.repeat(40);

let folder: ReturnType<typeof temporaryFolder>;
let assembly: Assembly;
let stack: ResolvedStack;
beforeAll(async () => {
  folder = temporaryFolder();
  assembly = await synthesize(folder.path, STAGE, { [STAGE]: LARGEST });
  stack = resolveTemplate(assembly.template, { stackName: assembly.stackName });
});
afterAll(() => folder.remove());

const bytes = (value: unknown) => Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value));
const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);

function within(limit: number, sizes: [name: string, size: number][]): void {
  expect(sizes.length).toBeGreaterThan(0);
  expect(sizes.filter(([, size]) => size > limit * USABLE)).toEqual([]);
}

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

describe('the largest stage stays within the limits of AWS', () => {
  it('for a template: 500 resources, 200 outputs, 1 MB, a description of 1,024 bytes', () => {
    const { Resources = {}, Outputs = {} } = assembly.template;
    within(500, [['resources', Object.keys(Resources).length]]);
    within(200, [['outputs', Object.keys(Outputs).length]]);
    within(1_000_000, [['template', bytes(assembly.template)]]);
    const { Description } = assembly.template as { Description?: string };
    within(1_024, [['description', bytes(Description ?? '')]]);
  });

  it('for the environment of a function: 4 KB', () => {
    const sizes = stack.ofType('AWS::Lambda::Function').map(({ logicalId, properties }): [string, number] => {
      const { Variables = {} } = (properties.Environment ?? {}) as { Variables?: Record<string, unknown> };
      return [logicalId, sum(Object.entries(Variables).map(([name, value]) => bytes(name) + bytes(String(value))))];
    });
    within(4_096, sizes);
  });

  it('for the code of a function: 250 MB unzipped', () => {
    const sizes = stack.ofType('AWS::Lambda::Function').map(({ logicalId, properties }): [string, number] => {
      const { S3Key } = properties.Code as { S3Key: string };
      return [logicalId, folderBytes(assembly.codeFolder(S3Key))];
    });
    within(250 * 1024 * 1024, sizes);
  });

  it('for the inline policies of a role: 10,240 characters in all; for a managed policy: 6,144', () => {
    const inline = new Map(
      stack.ofType('AWS::IAM::Role').map(({ logicalId, properties }) => {
        const documents = ((properties.Policies ?? []) as { PolicyDocument: unknown }[]).map(
          (each) => each.PolicyDocument,
        );
        return [logicalId, sum(documents.map(bytes))] as const;
      }),
    );
    expect(Math.max(...inline.values())).toBeGreaterThan(1_000);
    for (const { logicalId } of stack.ofType('AWS::IAM::Policy')) {
      const { Roles = [] } = (assembly.template.Resources?.[logicalId]?.Properties ?? {}) as {
        Roles?: { Ref: string }[];
      };
      const size = bytes(stack.resources.get(logicalId)?.properties.PolicyDocument);
      for (const { Ref } of Roles) inline.set(Ref, (inline.get(Ref) ?? 0) + size);
    }
    within(10_240, [...inline]);
    expect(stack.ofType('AWS::IAM::ManagedPolicy')).toEqual([]);
  });

  it('for the resource policy of a function: 20 KB', () => {
    const sizes = new Map<string, number>();
    for (const { properties } of stack.ofType('AWS::Lambda::Permission')) {
      const name = String(properties.FunctionName);
      // A statement has about 200 characters of its own beside what it names.
      sizes.set(name, (sizes.get(name) ?? 0) + bytes(properties) + 200);
    }
    within(20 * 1024, [...sizes]);
  });

  it('for an HTTP API: 300 routes, 300 integrations, 10 authorizers', () => {
    const [api = expect.fail('no HTTP API')] = apiDefinitions(stack);
    within(300, [['routes', httpRoutes(api).length]]);
    within(300, [['integrations', Object.keys(api.integrations).length]]);
    within(10, [['authorizers', Object.keys(api.authorizers).length]]);
  });

  it('for the policies of buckets (20 KB) and keys (32 KB), and for a state machine (1 MB)', () => {
    within(20 * 1024, sizesOf('AWS::S3::BucketPolicy', 'PolicyDocument'));
    within(32 * 1024, sizesOf('AWS::KMS::Key', 'KeyPolicy'));
    within(1024 * 1024, sizesOf('AWS::StepFunctions::StateMachine', 'DefinitionString'));
  });

  it('for names and descriptions: secrets 512, functions 256, roles 1,000, keys 8,192, alarms 1,024 characters', () => {
    within(512, sizesOf('AWS::SecretsManager::Secret', 'Name'));
    within(2_048, sizesOf('AWS::SecretsManager::Secret', 'Description'));
    within(256, sizesOf('AWS::Lambda::Function', 'Description'));
    within(1_000, sizesOf('AWS::IAM::Role', 'Description'));
    within(8_192, sizesOf('AWS::KMS::Key', 'Description'));
    within(1_024, sizesOf('AWS::CloudWatch::Alarm', 'AlarmDescription'));
  });

  it('for filters of one log group: 100', () => {
    const filters = stack.ofType('AWS::Logs::MetricFilter').map(({ properties }) => String(properties.LogGroupName));
    within(
      100,
      [...new Set(filters)].map((group) => [group, filters.filter((each) => each === group).length]),
    );
  });
});

function sizesOf(type: string, property: string): [string, number][] {
  return stack
    .ofType(type)
    .filter(({ properties }) => properties[property] !== undefined)
    .map(({ logicalId, properties }) => [logicalId, bytes(properties[property])]);
}

function folderBytes(path: string): number {
  const entries = readdirSync(path, { withFileTypes: true, recursive: true });
  return sum(
    entries.filter((entry) => entry.isFile()).map((entry) => statSync(join(entry.parentPath, entry.name)).size),
  );
}

import { beforeAll, describe, expect, inject, it } from 'vitest';
import { idleBill, idleTotal } from '../../bench/bill/idle-stage.ts';
import { type Assembly, readAssembly } from '../../local/template/synthesize.ts';
import { type CloudFormationTemplate, type ResolvedStack, resolveTemplate } from '../../local/template/template.ts';
import { physicalNames } from './limits/physical-names.ts';
import { synthesized } from './synthesized.ts';

let staging: Assembly;
let stagingStack: ResolvedStack;
beforeAll(() => {
  staging = readAssembly(inject('assemblies').idle, 'idle');
  stagingStack = resolveTemplate(staging.template, { stackName: staging.stackName });
});

const exportsOf = ({ Outputs = {} }: CloudFormationTemplate) =>
  Object.values(Outputs).flatMap((output) => ('Export' in output ? [output.Export] : []));

describe('several stages in one account', () => {
  it('have no name in common, although they share a tenant', () => {
    const prod = physicalNames(synthesized('acme-prod').stack);
    const other = physicalNames(stagingStack);
    // These types have names, so both lists are more than empty.
    for (const type of ['Lambda::Function', 'Dashboard', 'SecretsManager::Secret', 'QueryDefinition', 'CloudFront']) {
      expect(prod.some((name) => name.includes(type))).toBe(true);
    }
    expect(prod.filter((name) => other.includes(name))).toEqual([]);
    expect(other.filter((name) => physicalNames(synthesized('local').stack).includes(name))).toEqual([]);
  });

  it('have no name in common if the name of one stage continues that of another', () => {
    // `countersign-acme` and a function `eu-health` would be `countersign-acme-eu` and the function `health`.
    const prefix = 'countersign-idle-';
    const names = physicalNames(stagingStack).map((name) => name.split(' ').slice(1).join(' '));
    const suffixes = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
    expect(suffixes).toContain('bootstrap');
    expect(suffixes.filter((one) => suffixes.some((other) => one.endsWith(`-${other}`)))).toEqual([]);
  });

  it('export no values, whose names would have to be unique', () => {
    expect([...exportsOf(staging.template), ...exportsOf(synthesized('acme-prod').template)]).toEqual([]);
  });

  it('have names in CloudFront that contain the region, because all regions share them', () => {
    const global = physicalNames(stagingStack).filter((name) => name.startsWith('AWS::CloudFront::'));
    expect(global).toHaveLength(3);
    for (const name of global) expect(name).toContain('us-east-1');
  });
});

it('a staging stage with two tenants and no traffic costs less than 25 USD a month', () => {
  const lines = idleBill(stagingStack);
  const usdOf = (name: string) => lines.find(({ line }) => line === name)?.usd;
  expect([usdOf('dashboards'), usdOf('keys')]).toEqual([3, 2]);
  expect(lines.map(({ line }) => line)).not.toContain('rules of the firewall');
  expect(lines.length).toBeGreaterThanOrEqual(8);
  expect(idleTotal(lines)).toBeLessThan(25);
});

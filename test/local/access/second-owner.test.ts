import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Change } from '../../../lambdas/pipeline/definition-changes.ts';
import type { Assembly } from '../../../local/template/synthesize.ts';
import { piped } from '../../cli/command-line.ts';
import { ACME_KEY } from '../harness/host-client.ts';
import { startTestHost, type TestHost } from '../harness/test-host.ts';

const policies = mkdtempSync(join(tmpdir(), 'countersign-policies-'));
const FREEZE = '@id("freeze") @reason("frozen") forbid (principal, action, resource in Connector::"slack");';
let host: TestHost;
beforeAll(async () => {
  host = await startTestHost({ change: asProd });
});
afterAll(async () => {
  await host?.stop();
  rmSync(policies, { recursive: true, force: true });
});

/** As `kind: prod` in the settings of the stage, for the functions that ask for a second owner. */
function asProd(assembly: Assembly): Assembly {
  const template = structuredClone(assembly.template);
  const functions = Object.entries(template.Resources ?? {}).flatMap(([id, { Type, Properties = {} }]) =>
    Type === 'AWS::Lambda::Function' && /^(PolicyApi|DefinitionsApiDefinitions)/.test(id) ? [Properties] : [],
  );
  expect(functions).toHaveLength(2);
  for (const { Environment } of functions) {
    (Environment as { Variables: Record<string, string> }).Variables.STAGE_KIND = 'prod';
  }
  return { ...assembly, template };
}

const says = (words: string[], key = ACME_KEY) => piped([...words, '--url', host.url], { COUNTERSIGN_API_KEY: key });
const published = async () => (await host.api<{ files: Record<string, string> }>('/policies')).body.files;

it('in a prod stage, policies that do more than forbid apply after a second owner has confirmed them', async () => {
  writeFileSync(join(policies, 'freeze.cedar'), FREEZE);
  expect((await says(['policy', 'publish', policies])).stdout).toContain('published 1 policy: freeze');

  writeFileSync(join(policies, 'freeze.cedar'), `@id("all") permit (principal, action, resource);`);
  const alone = await says(['policy', 'publish', policies]);
  expect([alone.exitCode, alone.stderr]).toEqual([1, expect.stringContaining('there is no second owner')]);

  const added = await says(['tenant', 'owner', 'otto', '--name', 'Otto Owner', '--tenant', 'acme', '--json']);
  const ottosKey = (JSON.parse(added.stdout) as { key: string }).key;
  const { stdout, exitCode } = await says(['policy', 'publish', policies]);
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining('removes the forbid freeze, adds the permit all')]);
  const [, id = ''] = /changes confirm (\S+)/.exec(stdout) ?? [];
  expect(await published()).toEqual({ 'freeze.cedar': FREEZE });

  expect((await says(['changes', 'pending'])).stdout).toMatch(new RegExp(`${id}\\s+policies\\s+olivia`));
  expect((await says(['changes', 'show', id])).stdout).toContain('@id("all") permit');
  expect((await says(['changes', 'confirm', id])).stderr).toContain('another owner must confirm it');
  expect((await says(['changes', 'confirm', id], ottosKey)).stdout).toContain('the policies apply');
  expect(Object.values(await published())).toEqual(['@id("all") permit (principal, action, resource);']);

  const { body } = await host.api<{ changes: Change[] }>('/changes?kind=policies');
  expect(body.changes.map(({ actor, action, requestedBy }) => [actor, action, requestedBy])).toEqual([
    ['otto', 'confirmed', 'olivia'],
    ['olivia', 'requested', undefined],
    ['olivia', 'created', undefined],
  ]);
});

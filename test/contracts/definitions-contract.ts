import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Person } from '../../lambdas/approval/people.ts';
import type { Automation, Connection, Definitions } from '../../lambdas/pipeline/definitions.ts';
import { NO_SETTINGS } from '../../lambdas/run/caps.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import { noise } from '../fakes/noise.ts';

/** Even compressed, a few of these exceed the 1 MB that one answer of DynamoDB holds, and two exceed a row. */
const LARGE_BYTES = 350_000;

export function describeDefinitionsContract(
  name: string,
  open: () => Promise<{ definitions: Definitions; close(): Promise<void> }>,
): void {
  describe(`${name} as a tenant's definitions`, () => {
    let definitions: Definitions;
    let close: () => Promise<void>;
    let tenants = 0;
    beforeAll(async () => {
      ({ definitions, close } = await open());
    });
    afterAll(() => close());
    const newTenant = () => {
      tenants += 1;
      return `defining-${tenants}`;
    };

    const workflow = Workflow.parse({
      name: 'label-new-issue',
      steps: [{ id: 'label', tool: 'github.labels.add', with: { labels: ['triage'] } }],
    });
    const automation = (named: string, enabled = true): Automation => ({
      name: named,
      enabled,
      workspace: 'default',
      trigger: { source: 'github', event: 'issues.opened', filter: '{% true %}' },
      workflow: { name: 'label-new-issue', version: 1 },
    });
    const connection: Connection = { name: 'github', baseUrl: 'https://api.github.com', instance: 'acme' };

    it('has nothing for a tenant that defined nothing', async () => {
      const tenant = newTenant();
      expect(await definitions.automations(tenant)).toEqual([]);
      expect(await definitions.workflow(tenant, 'label-new-issue', 1)).toBeUndefined();
      expect(await definitions.connection(tenant, 'github')).toBeUndefined();
    });

    it('lists all automations of a tenant, and the newest of each name', async () => {
      const tenant = newTenant();
      for (const named of ['b', 'a', 'c']) await definitions.saveAutomation(tenant, automation(named));
      await definitions.saveAutomation(tenant, automation('a', false));
      const found = await definitions.automations(tenant);
      expect(found).toEqual([automation('a', false), automation('b'), automation('c')]);
      expect(await definitions.automations(newTenant())).toEqual([]);
    });

    it('keeps every published version of a workflow', async () => {
      const tenant = newTenant();
      const changed = { ...workflow, description: 'better' };
      await definitions.publishWorkflow(tenant, workflow, 1);
      await definitions.publishWorkflow(tenant, changed, 2);
      expect(await definitions.workflow(tenant, workflow.name, 1)).toEqual(workflow);
      expect(await definitions.workflow(tenant, workflow.name, 2)).toEqual(changed);
      expect(await definitions.workflow(newTenant(), workflow.name, 1)).toBeUndefined();
    });

    it('publishes the identical version again without complaint', async () => {
      const tenant = newTenant();
      await definitions.publishWorkflow(tenant, workflow, 1);
      await definitions.publishWorkflow(tenant, structuredClone(workflow), 1);
      expect(await definitions.workflow(tenant, workflow.name, 1)).toEqual(workflow);
    });

    it('refuses another workflow under a published number, and keeps the published one', async () => {
      const tenant = newTenant();
      await definitions.publishWorkflow(tenant, workflow, 1);
      const other = { ...workflow, description: 'not the same' };
      await expect(definitions.publishWorkflow(tenant, other, 1)).rejects.toMatchObject({ code: 'WORKFLOW_INVALID' });
      expect(await definitions.workflow(tenant, workflow.name, 1)).toEqual(workflow);
    });

    describe('of workflows, to look through', () => {
      const named = (name: string, filler = '') =>
        Workflow.parse({ name, steps: [{ id: 'a', tool: 'transform', with: { filler } }] });

      it('are none for a tenant that published nothing', async () => {
        const tenant = newTenant();
        expect(await definitions.newestWorkflows(tenant, { limit: 5 })).toEqual([]);
        expect(await definitions.workflowVersions(tenant, 'a', { limit: 5 })).toEqual([]);
      });

      it('are the newest of each name in their order, from any name on', async () => {
        const tenant = newTenant();
        // A name that begins another must not be taken for it, nor its versions for the other's.
        for (const name of ['b', 'a-b', 'a', 'a1', 'z']) await definitions.publishWorkflow(tenant, named(name), 1);
        for (const version of [2, 3]) {
          await definitions.publishWorkflow(tenant, { ...named('a'), description: `${version}` }, version);
        }
        await definitions.saveAutomation(tenant, automation('b'));
        await definitions.savePerson(tenant, Person.parse({ id: 'ana', name: 'Ana', role: 'member' }));
        const all = [
          ['a', 3],
          ['a-b', 1],
          ['a1', 1],
          ['b', 1],
          ['z', 1],
        ];
        const seen = async (page: { after?: string; limit: number }) =>
          (await definitions.newestWorkflows(tenant, page)).map((each) => [each.workflow.name, each.version]);
        expect(await seen({ limit: 10 })).toEqual(all);
        expect(await seen({ limit: 2 })).toEqual(all.slice(0, 2));
        expect(await seen({ after: 'a', limit: 2 })).toEqual(all.slice(1, 3));
        expect(await seen({ after: 'aa', limit: 10 })).toEqual(all.slice(3));
        expect(await seen({ after: 'z', limit: 1 })).toEqual([]);
      });

      it('are the versions of one, newest first, from any number down', async () => {
        const tenant = newTenant();
        for (let version = 1; version <= 12; version += 1) {
          await definitions.publishWorkflow(tenant, { ...named('a'), description: `${version}` }, version);
        }
        await definitions.publishWorkflow(tenant, named('a-b'), 1);
        const numbers = async (page: { before?: number; limit: number }) =>
          (await definitions.workflowVersions(tenant, 'a', page)).map(({ version }) => version);
        expect(await numbers({ limit: 3 })).toEqual([12, 11, 10]);
        expect(await numbers({ before: 10, limit: 3 })).toEqual([9, 8, 7]);
        expect(await numbers({ before: 2, limit: 3 })).toEqual([1]);
        expect(await numbers({ before: 1, limit: 3 })).toEqual([]);
        const [newest] = await definitions.workflowVersions(tenant, 'a', { limit: 1 });
        expect(newest?.workflow).toEqual({ ...named('a'), description: '12' });
      });

      it('are as many as were asked for, however large they are', async () => {
        const tenant = newTenant();
        for (let version = 1; version <= 5; version += 1) {
          await definitions.publishWorkflow(tenant, named('a', noise(`${version}`, LARGE_BYTES)), version);
        }
        expect(await definitions.workflowVersions(tenant, 'a', { limit: 5 })).toHaveLength(5);
      });
    });

    it('refuses what no row can hold, by its name', async () => {
      const tenant = newTenant();
      const policies = { engine: 'cedar' as const, files: { 'a.cedar': noise('policies', 2 * LARGE_BYTES) } };
      await expect(definitions.savePolicies(tenant, policies)).rejects.toMatchObject({ code: 'ROW_TOO_LARGE' });
    });

    it('has no caps for a tenant that set none, and then those it set', async () => {
      const tenant = newTenant();
      expect(await definitions.settings(tenant)).toEqual(NO_SETTINGS);
      const settings = { caps: { maxConcurrency: 3 }, workspaces: { payments: 2 }, counterShards: 4 };
      await definitions.saveSettings(tenant, settings);
      expect(await definitions.settings(tenant)).toEqual(settings);
      expect(await definitions.settings(newTenant())).toEqual(NO_SETTINGS);
    });

    it('keeps connections by name, per tenant', async () => {
      const tenant = newTenant();
      await definitions.saveConnection(tenant, connection);
      await definitions.saveConnection(tenant, { ...connection, instance: 'moved' });
      expect(await definitions.connection(tenant, 'github')).toEqual({ ...connection, instance: 'moved' });
      expect(await definitions.connection(newTenant(), 'github')).toBeUndefined();
    });
  });
}

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Automation, Connection, Definitions } from '../../lambdas/pipeline/definitions.ts';
import { NO_SETTINGS } from '../../lambdas/run/caps.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';

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

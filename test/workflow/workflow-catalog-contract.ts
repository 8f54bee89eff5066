import { beforeAll, describe, expect, it } from 'vitest';
import type { Definitions } from '../../lambdas/pipeline/definitions.ts';
import { Workflow } from '../../lambdas/workflow/workflow.ts';
import type { WorkflowCatalog } from '../../lambdas/workflow/workflow-catalog.ts';

interface Catalogued {
  catalog: WorkflowCatalog;
  definitions: Pick<Definitions, 'publishWorkflow' | 'saveAutomation' | 'savePerson'>;
}

/** Large enough that a few of them exceed what one answer of DynamoDB holds. */
const LARGE_BYTES = 200_000;

export function describeWorkflowCatalogContract(name: string, open: () => Promise<Catalogued>): void {
  describe(`${name} as a catalog of workflows`, () => {
    let catalog: WorkflowCatalog;
    let definitions: Catalogued['definitions'];
    let tenants = 0;
    beforeAll(async () => {
      ({ catalog, definitions } = await open());
    });
    const newTenant = () => {
      tenants += 1;
      return `cataloguing-${tenants}`;
    };
    const workflow = (named: string, filler = '') =>
      Workflow.parse({ name: named, steps: [{ id: 'a', tool: 'transform', with: { filler } }] });
    const seen = (found: Awaited<ReturnType<WorkflowCatalog['newest']>>) =>
      found.map((each) => [each.workflow.name, each.version]);

    it('has nothing of a tenant that published nothing', async () => {
      const tenant = newTenant();
      expect(await catalog.newest(tenant, { limit: 5 })).toEqual([]);
      expect(await catalog.versions(tenant, 'a', { limit: 5 })).toEqual([]);
    });

    it('gives the newest of each name in their order, from any name on', async () => {
      const tenant = newTenant();
      // A name that begins another must not be taken for it, nor its versions for the other's.
      for (const named of ['b', 'a-b', 'a', 'a1', 'z']) await definitions.publishWorkflow(tenant, workflow(named), 1);
      for (const version of [2, 3]) {
        await definitions.publishWorkflow(tenant, { ...workflow('a'), description: `${version}` }, version);
      }
      await definitions.savePerson(tenant, {
        id: 'ana',
        name: 'Ana',
        role: 'member',
        tier: 'low',
        groups: [],
        identities: [],
      });
      const all = [
        ['a', 3],
        ['a-b', 1],
        ['a1', 1],
        ['b', 1],
        ['z', 1],
      ];
      expect(seen(await catalog.newest(tenant, { limit: 10 }))).toEqual(all);
      expect(seen(await catalog.newest(tenant, { limit: 2 }))).toEqual(all.slice(0, 2));
      expect(seen(await catalog.newest(tenant, { after: 'a', limit: 2 }))).toEqual(all.slice(1, 3));
      expect(seen(await catalog.newest(tenant, { after: 'aa', limit: 10 }))).toEqual(all.slice(3));
      expect(await catalog.newest(tenant, { after: 'z', limit: 1 })).toEqual([]);
    });

    it('gives the versions of one, newest first, from any number down', async () => {
      const tenant = newTenant();
      for (let version = 1; version <= 12; version += 1) {
        await definitions.publishWorkflow(tenant, { ...workflow('a'), description: `${version}` }, version);
      }
      await definitions.publishWorkflow(tenant, workflow('a-b'), 1);
      const numbers = async (page: { before?: number; limit: number }) =>
        (await catalog.versions(tenant, 'a', page)).map(({ version }) => version);
      expect(await numbers({ limit: 3 })).toEqual([12, 11, 10]);
      expect(await numbers({ before: 10, limit: 3 })).toEqual([9, 8, 7]);
      expect(await numbers({ before: 2, limit: 3 })).toEqual([1]);
      expect(await numbers({ before: 1, limit: 3 })).toEqual([]);
      const [newest] = await catalog.versions(tenant, 'a', { limit: 1 });
      expect(newest?.workflow).toEqual({ ...workflow('a'), description: '12' });
    });

    it('gives as many as were asked for, however large they are', async () => {
      const tenant = newTenant();
      for (let version = 1; version <= 7; version += 1) {
        await definitions.publishWorkflow(tenant, workflow('a', `${version}`.repeat(LARGE_BYTES)), version);
      }
      expect(await catalog.versions(tenant, 'a', { limit: 7 })).toHaveLength(7);
    });
  });
}

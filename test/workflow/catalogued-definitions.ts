import type { PublishedWorkflow } from '../../lambdas/workflow/workflow.ts';
import type { PublishedVersion, WorkflowCatalog } from '../../lambdas/workflow/workflow-catalog.ts';
import { MemoryDefinitions } from '../fakes/memory-definitions.ts';

/** Definitions in memory that can be looked through. */
export class CataloguedDefinitions extends MemoryDefinitions implements WorkflowCatalog {
  readonly #names = new Map<string, Set<string>>();

  override async publishWorkflow(tenant: string, workflow: PublishedWorkflow, version: number): Promise<void> {
    await super.publishWorkflow(tenant, workflow, version);
    this.#names.set(tenant, (this.#names.get(tenant) ?? new Set()).add(workflow.name));
  }

  async newest(tenant: string, { after = '', limit }: { after?: string; limit: number }): Promise<PublishedVersion[]> {
    const names = [...(this.#names.get(tenant) ?? [])].filter((name) => name > after).sort();
    const found = names.slice(0, limit).map((name) => this.versions(tenant, name, { limit: 1 }));
    return (await Promise.all(found)).flat();
  }

  async versions(
    tenant: string,
    name: string,
    { before = Number.POSITIVE_INFINITY, limit }: { before?: number; limit: number },
  ): Promise<PublishedVersion[]> {
    const found: PublishedVersion[] = [];
    const latest = Math.min(await this.latestVersion(tenant, name), before - 1);
    for (let version = latest; version > 0 && found.length < limit; version -= 1) {
      const workflow = await this.workflow(tenant, name, version);
      if (workflow) found.push({ version, workflow });
    }
    return found;
  }
}

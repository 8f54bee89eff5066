import type { Person } from '../../lambdas/approval/people.ts';
import type { Automation, Connection, Definitions, PublishedVersion } from '../../lambdas/pipeline/definitions.ts';
import { NO_TENANT_POLICIES, type TenantPolicies } from '../../lambdas/policy/policy.ts';
import { hashOf } from '../../lambdas/run/canonical-json.ts';
import { NO_SETTINGS, type TenantSettings } from '../../lambdas/run/caps.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';
import type { PublishedWorkflow } from '../../lambdas/workflow/workflow.ts';
import { MemoryRows } from './memory-rows.ts';

const workflowOf = (tenant: string, name: string) => `${tenant}#${name}`;
const padded = (version: number) => String(version).padStart(6, '0');

export class MemoryDefinitions implements Definitions {
  readonly #settings = new MemoryRows<TenantSettings>();
  readonly #automations = new MemoryRows<Automation>();
  readonly #connections = new MemoryRows<Connection>();
  readonly #workflows = new MemoryRows<PublishedVersion>();
  readonly #workflowNames = new MemoryRows<string>();
  readonly #policies = new MemoryRows<TenantPolicies>();
  readonly #people = new MemoryRows<Person>();

  async settings(tenant: string): Promise<TenantSettings> {
    return this.#settings.get(tenant) ?? NO_SETTINGS;
  }

  async saveSettings(tenant: string, settings: TenantSettings): Promise<void> {
    this.#settings.set(tenant, '', settings);
  }

  async automations(tenant: string): Promise<Automation[]> {
    return this.#automations.inPartition(tenant);
  }

  async workflow(tenant: string, name: string, version: number): Promise<PublishedWorkflow | undefined> {
    return this.#workflows.get(workflowOf(tenant, name), padded(version))?.workflow;
  }

  async workflowVersions(
    tenant: string,
    name: string,
    { before = Number.POSITIVE_INFINITY, limit }: { before?: number; limit: number },
  ): Promise<PublishedVersion[]> {
    const found = this.#workflows.inPartition(workflowOf(tenant, name)).filter(({ version }) => version < before);
    return found.reverse().slice(0, limit);
  }

  async newestWorkflows(
    tenant: string,
    { after = '', limit }: { after?: string; limit: number },
  ): Promise<PublishedVersion[]> {
    const names = this.#workflowNames.inPartition(tenant).filter((name) => name > after);
    const found = names.slice(0, limit).map((name) => this.workflowVersions(tenant, name, { limit: 1 }));
    return (await Promise.all(found)).flat();
  }

  async policies(tenant: string): Promise<TenantPolicies> {
    return this.#policies.get(tenant) ?? NO_TENANT_POLICIES;
  }

  async people(tenant: string): Promise<Person[]> {
    return this.#people.inPartition(tenant);
  }

  async savePolicies(tenant: string, policies: TenantPolicies): Promise<void> {
    this.#policies.set(tenant, '', policies);
  }

  async savePerson(tenant: string, person: Person): Promise<void> {
    this.#people.set(tenant, person.id, person);
  }

  async connection(tenant: string, name: string): Promise<Connection | undefined> {
    return this.#connections.get(tenant, name);
  }

  async saveAutomation(tenant: string, automation: Automation): Promise<void> {
    this.#automations.set(tenant, automation.name, automation);
  }

  async saveConnection(tenant: string, connection: Connection): Promise<void> {
    this.#connections.set(tenant, connection.name, connection);
  }

  async publishWorkflow(tenant: string, workflow: PublishedWorkflow, version: number): Promise<void> {
    const published = this.#workflows.get(workflowOf(tenant, workflow.name), padded(version))?.workflow;
    if (published && hashOf(published) !== hashOf(JSON.parse(JSON.stringify(workflow)))) {
      throw new CountersignError('WORKFLOW_INVALID', `version ${version} of ${workflow.name} is published and differs`);
    }
    this.#workflows.set(workflowOf(tenant, workflow.name), padded(version), { version, workflow });
    this.#workflowNames.set(tenant, workflow.name, workflow.name);
  }
}

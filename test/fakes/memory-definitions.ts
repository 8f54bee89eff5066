import type { Person } from '../../lambdas/approval/people.ts';
import type { Automation, Connection, Definitions } from '../../lambdas/pipeline/definitions.ts';
import { NO_TENANT_POLICIES, type TenantPolicies } from '../../lambdas/policy/policy.ts';
import { hashOf } from '../../lambdas/run/canonical-json.ts';
import { NO_SETTINGS, type TenantSettings } from '../../lambdas/run/caps.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';
import type { PublishedWorkflow } from '../../lambdas/workflow/workflow.ts';
import { MemoryRows } from './memory-rows.ts';

export class MemoryDefinitions implements Definitions {
  readonly #settings = new MemoryRows<TenantSettings>();
  readonly #automations = new MemoryRows<Automation>();
  readonly #connections = new MemoryRows<Connection>();
  readonly #workflows = new MemoryRows<PublishedWorkflow>();
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
    return this.#workflows.get(tenant, `${name}#${version}`);
  }

  async latestVersion(tenant: string, name: string): Promise<number> {
    let version = 0;
    while (this.#workflows.get(tenant, `${name}#${version + 1}`)) version += 1;
    return version;
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
    const published = this.#workflows.get(tenant, `${workflow.name}#${version}`);
    if (published && hashOf(published) !== hashOf(JSON.parse(JSON.stringify(workflow)))) {
      throw new CountersignError('WORKFLOW_INVALID', `version ${version} of ${workflow.name} is published and differs`);
    }
    this.#workflows.set(tenant, `${workflow.name}#${version}`, workflow);
  }
}

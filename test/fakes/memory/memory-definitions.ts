import type { ProfileDefinition } from '../../../lambdas/agents/profiles.ts';
import { issuerKey, type StageIssuer } from '../../../lambdas/entry/oidc-issuer.ts';
import type { StoredConfiguration } from '../../../lambdas/pipeline/configuration.ts';
import {
  type ChangeAuthor,
  type ConfirmedSave,
  recorded,
  type SaveOptions,
} from '../../../lambdas/pipeline/definition-changes.ts';
import {
  type Automation,
  type Connection,
  type Definitions,
  issuerTaken,
  type PublishedVersion,
} from '../../../lambdas/pipeline/definitions.ts';
import type { GenericSource } from '../../../lambdas/pipeline/generic-source.ts';
import { NO_TENANT_POLICIES, type TenantPolicies } from '../../../lambdas/policy/policy.ts';
import { hashOf } from '../../../lambdas/run/canonical-json.ts';
import { CountersignError } from '../../../lambdas/run/errors.ts';
import { NO_SETTINGS, type TenantSettings } from '../../../lambdas/run/settings/caps.ts';
import type { PublishedWorkflow } from '../../../lambdas/workflow/workflow.ts';
import { BY_SETUP, MemoryChanges } from './memory-changes.ts';
import { MemoryRows } from './memory-rows.ts';

const workflowOf = (tenant: string, name: string) => `${tenant}#${name}`;
const padded = (version: number) => String(version).padStart(6, '0');

/** The author is optional in tests. */
export class MemoryDefinitions extends MemoryChanges implements Definitions {
  readonly #settings = new MemoryRows<TenantSettings>();
  readonly #issuers = new MemoryRows<StageIssuer>();
  readonly #automations = new MemoryRows<Automation>();
  readonly #sources = new MemoryRows<GenericSource>();
  readonly #configurations = new MemoryRows<StoredConfiguration>();
  readonly #profiles = new MemoryRows<ProfileDefinition>();
  readonly #connections = new MemoryRows<Connection>();
  readonly #workflows = new MemoryRows<PublishedVersion>();
  readonly #workflowNames = new MemoryRows<string>();
  readonly #policies = new MemoryRows<TenantPolicies>();

  async settings(tenant: string): Promise<TenantSettings> {
    return this.#settings.get(tenant) ?? NO_SETTINGS;
  }

  async saveSettings(tenant: string, settings: TenantSettings, by: ChangeAuthor = BY_SETUP): Promise<void> {
    for (const each of settings.issuers ?? []) {
      const claim = this.#issuers.get(issuerKey(each));
      if (claim && claim.tenant !== tenant) throw issuerTaken(each);
    }
    for (const each of this.#settings.get(tenant)?.issuers ?? []) this.#issuers.set(issuerKey(each), '', undefined);
    for (const each of settings.issuers ?? []) this.#issuers.set(issuerKey(each), '', { ...each, tenant });
    this.save(this.#settings, [tenant, ''], settings, { tenant, kind: 'settings', name: tenant, by });
  }

  async issuer(issuer: string, audience: string): Promise<StageIssuer | undefined> {
    return this.#issuers.get(issuerKey({ issuer, audience }));
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

  async savePolicies(
    tenant: string,
    policies: TenantPolicies,
    by: ChangeAuthor = BY_SETUP,
    how: ConfirmedSave<TenantPolicies> = {},
  ): Promise<void> {
    const saved = { tenant, kind: 'policies' as const, name: tenant, by };
    const isNew = how.replaces === NO_TENANT_POLICIES && !this.#policies.get(tenant);
    this.save(this.#policies, [tenant, ''], policies, saved, isNew ? { ...how, replaces: null } : how);
  }

  async connection(tenant: string, name: string): Promise<Connection | undefined> {
    return this.#connections.get(tenant, name);
  }

  async connections(tenant: string): Promise<Connection[]> {
    return this.#connections.inPartition(tenant);
  }

  async deleteConnection(tenant: string, connection: Connection, by: ChangeAuthor = BY_SETUP): Promise<void> {
    const { name } = connection;
    const deleted = { tenant, kind: 'connection' as const, name, by };
    this.delete(this.#connections, [tenant, name], deleted, { replaces: connection });
  }

  async saveAutomation(
    tenant: string,
    automation: Automation,
    by: ChangeAuthor = BY_SETUP,
    how: Pick<SaveOptions, 'replaces'> = {},
  ): Promise<void> {
    const { name } = automation;
    this.save(this.#automations, [tenant, name], automation, { tenant, kind: 'automation', name, by }, how);
  }

  async deleteAutomation(tenant: string, automation: Automation, by: ChangeAuthor = BY_SETUP): Promise<void> {
    const { name } = automation;
    const deleted = { tenant, kind: 'automation' as const, name, by };
    this.delete(this.#automations, [tenant, name], deleted, { replaces: automation });
  }

  async sources(tenant: string): Promise<GenericSource[]> {
    return this.#sources.inPartition(tenant);
  }

  async saveSource(tenant: string, source: GenericSource, by: ChangeAuthor = BY_SETUP): Promise<void> {
    const { name } = source;
    this.save(this.#sources, [tenant, name], source, { tenant, kind: 'webhook_source', name, by });
  }

  async deleteSource(tenant: string, name: string, by: ChangeAuthor): Promise<void> {
    const before = recorded(this.#sources.get(tenant, name));
    this.#sources.set(tenant, name, undefined);
    this.record(tenant, { ...by, kind: 'webhook_source', name, action: 'deleted', before, after: null });
  }

  async configurations(tenant: string): Promise<StoredConfiguration[]> {
    return this.#configurations.inPartition(tenant);
  }

  async configuration(tenant: string, name: string): Promise<StoredConfiguration | undefined> {
    return this.#configurations.get(tenant, name);
  }

  async saveConfiguration(
    tenant: string,
    configuration: StoredConfiguration,
    by: ChangeAuthor = BY_SETUP,
    how: Pick<SaveOptions, 'replaces'> = {},
  ): Promise<void> {
    const { name } = configuration;
    this.save(this.#configurations, [tenant, name], configuration, { tenant, kind: 'configuration', name, by }, how);
  }

  async deleteConfiguration(tenant: string, configuration: StoredConfiguration, by: ChangeAuthor = BY_SETUP) {
    const { name } = configuration;
    const deleted = { tenant, kind: 'configuration' as const, name, by };
    this.delete(this.#configurations, [tenant, name], deleted, { replaces: configuration });
  }

  async profiles(tenant: string): Promise<ProfileDefinition[]> {
    return this.#profiles.inPartition(tenant);
  }

  async saveProfile(tenant: string, profile: ProfileDefinition, by: ChangeAuthor = BY_SETUP): Promise<void> {
    const { name } = profile;
    this.save(this.#profiles, [tenant, name], profile, { tenant, kind: 'profile', name, by });
  }

  async saveConnection(tenant: string, connection: Connection, by: ChangeAuthor = BY_SETUP): Promise<void> {
    const { name } = connection;
    this.save(this.#connections, [tenant, name], connection, { tenant, kind: 'connection', name, by });
  }

  async publishWorkflow(
    tenant: string,
    workflow: PublishedWorkflow,
    version: number,
    by: ChangeAuthor = BY_SETUP,
  ): Promise<void> {
    const published = this.#workflows.get(workflowOf(tenant, workflow.name), padded(version))?.workflow;
    if (published && hashOf(published) !== hashOf(JSON.parse(JSON.stringify(workflow)))) {
      throw new CountersignError('WORKFLOW_INVALID', `version ${version} of ${workflow.name} is published and differs`);
    }
    if (published) return;
    const name = `${workflow.name} v${version}`;
    const created = { kind: 'workflow' as const, name, action: 'created' as const, before: null };
    this.record(tenant, { ...by, ...created, after: recorded(workflow) });
    this.#workflows.set(workflowOf(tenant, workflow.name), padded(version), { version, workflow });
    this.#workflowNames.set(tenant, workflow.name, workflow.name);
  }
}

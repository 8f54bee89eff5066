import type { DynamoDBClient, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { ProfileDefinition } from '../agents/profiles.ts';
import { issuerKey, type OidcIssuer, type StageIssuer } from '../entry/oidc-issuer.ts';
import { systemPause } from '../entry/system.ts';
import { NO_TENANT_POLICIES, PoliciesUnavailable, type TenantPolicies } from '../policy/policy.ts';
import { canonicalJson, hashOf, sha256Hex } from '../run/canonical-json.ts';
import { rowIsStill } from '../run/dynamo/dynamo-conditions.ts';
import { docOf, keyOf, toItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import { DynamoRows, under } from '../run/dynamo/dynamo-rows.ts';
import type { Pause } from '../run/dynamo/dynamo-transactions.ts';
import { isTransient } from '../run/dynamo/dynamo-transactions.ts';
import { CountersignError } from '../run/errors.ts';
import { NO_SETTINGS, type TenantSettings } from '../run/settings/caps.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { StoredConfiguration } from './configuration.ts';
import type { ChangeAuthor, ConfirmedSave, SaveOptions } from './definition-changes.ts';
import {
  type Automation,
  type Connection,
  type Definitions,
  issuerTaken,
  type PublishedVersion,
} from './definitions.ts';
import { DynamoChanges } from './dynamo-definition-changes.ts';
import type { GenericSource } from './generic-source.ts';

const claimKey = (issuer: Pick<OidcIssuer, 'issuer' | 'audience'>) => keys.issuerClaimKey(sha256Hex(issuerKey(issuer)));

export class DynamoDefinitions extends DynamoChanges implements Definitions {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string, pause: Pause = systemPause) {
    const rows = new DynamoRows(client, table);
    super(rows, pause);
    this.#rows = rows;
  }

  automations(tenant: string): Promise<Automation[]> {
    return this.#list(tenant, keys.AUTOMATION_PREFIX);
  }

  async policies(tenant: string): Promise<TenantPolicies> {
    try {
      return (await this.#rows.get<TenantPolicies>(keys.policiesKey(tenant))) ?? NO_TENANT_POLICIES;
    } catch (error) {
      throw isTransient(error) ? new PoliciesUnavailable({ cause: error }) : error;
    }
  }

  async settings(tenant: string): Promise<TenantSettings> {
    return (await this.#rows.get<TenantSettings>(keys.settingsKey(tenant))) ?? NO_SETTINGS;
  }

  workflow(tenant: string, name: string, version: number): Promise<PublishedWorkflow | undefined> {
    return this.#rows.get(keys.workflowKey(tenant, name, version));
  }

  async workflowVersions(
    tenant: string,
    name: string,
    { before, limit }: { before?: number; limit: number },
  ): Promise<PublishedVersion[]> {
    const all = under(keys.tenantPartition(tenant), keys.workflowPrefix(name));
    const wanted = before === undefined ? all : { ...all, to: keys.workflowKey(tenant, name, before - 1).sk };
    const rows = await this.#rows.range(wanted, { limit, newestFirst: true });
    return rows.map((row) => ({ version: keys.versionOfWorkflowKey(keyOf(row)), workflow: docOf(row) }));
  }

  async newestWorkflows(
    tenant: string,
    { after, limit }: { after?: string; limit: number },
  ): Promise<PublishedVersion[]> {
    const names: string[] = [];
    for (let last = after; names.length < limit; ) {
      const name = await this.#workflowNameAfter(tenant, last);
      if (name === undefined) break;
      names.push(name);
      last = name;
    }
    const found = await Promise.all(names.map((name) => this.workflowVersions(tenant, name, { limit: 1 })));
    return found.flat();
  }

  /** The rows of all versions are sorted by name, so the next name starts after the last version of this one. */
  async #workflowNameAfter(tenant: string, name: string | undefined): Promise<string | undefined> {
    const pk = keys.tenantPartition(tenant);
    const { from, to } = keys.ALL_WORKFLOWS;
    const start = name === undefined ? from : under(pk, keys.workflowPrefix(name)).to;
    const [row] = await this.#rows.range({ pk, from: start, to }, { limit: 1 });
    return row && docOf<PublishedWorkflow>(row).name;
  }

  connection(tenant: string, name: string): Promise<Connection | undefined> {
    return this.#rows.get(keys.connectionKey(tenant, name));
  }

  connections(tenant: string): Promise<Connection[]> {
    return this.#list(tenant, keys.CONNECTION_PREFIX);
  }

  async saveSettings(tenant: string, settings: TenantSettings, by: ChangeAuthor): Promise<void> {
    const key = keys.settingsKey(tenant);
    const before = await this.#rows.get<TenantSettings>(key);
    const besides = await this.#issuerClaims(tenant, before?.issuers ?? [], settings.issuers ?? []);
    const saved = { tenant, kind: 'settings' as const, name: tenant, key, by, besides };
    await this.save(saved, settings, { replaces: before ?? null });
  }

  issuer(issuer: string, audience: string): Promise<StageIssuer | undefined> {
    return this.#rows.get(claimKey({ issuer, audience }));
  }

  /** The writes that reserve new issuers for the tenant and release those it no longer names. */
  async #issuerClaims(tenant: string, before: readonly OidcIssuer[], after: readonly OidcIssuer[]) {
    const writes: TransactWriteItem[] = [];
    for (const issuer of after) {
      const claim = { ...issuer, tenant };
      const read = await this.#rows.getItem(claimKey(issuer));
      if (read && docOf<StageIssuer>(read).tenant !== tenant) throw issuerTaken(issuer);
      if (!read || hashOf(docOf<object>(read)) !== hashOf(claim)) {
        writes.push(this.#rows.put(toItem(claimKey(issuer), claim), rowIsStill(read)));
      }
    }
    const released = before.filter((each) => !after.some((named) => issuerKey(named) === issuerKey(each)));
    return [...writes, ...released.map((each) => this.#rows.remove(claimKey(each)))];
  }

  saveAutomation(
    tenant: string,
    automation: Automation,
    by: ChangeAuthor,
    how: Pick<SaveOptions, 'replaces'> = {},
  ): Promise<void> {
    const { name } = automation;
    return this.save({ tenant, kind: 'automation', name, key: keys.automationKey(tenant, name), by }, automation, how);
  }

  async deleteAutomation(tenant: string, automation: Automation, by: ChangeAuthor): Promise<void> {
    const { name } = automation;
    const key = keys.automationKey(tenant, name);
    await this.delete({ tenant, kind: 'automation', name, key, by }, { replaces: automation });
  }

  sources(tenant: string): Promise<GenericSource[]> {
    return this.#list(tenant, keys.SOURCE_PREFIX);
  }

  saveSource(tenant: string, source: GenericSource, by: ChangeAuthor): Promise<void> {
    const { name } = source;
    return this.save({ tenant, kind: 'webhook_source', name, key: keys.sourceKey(tenant, name), by }, source);
  }

  async deleteSource(tenant: string, name: string, by: ChangeAuthor): Promise<void> {
    await this.delete({ tenant, kind: 'webhook_source', name, key: keys.sourceKey(tenant, name), by });
  }

  configurations(tenant: string): Promise<StoredConfiguration[]> {
    return this.#list(tenant, keys.CONFIGURATION_PREFIX);
  }

  configuration(tenant: string, name: string): Promise<StoredConfiguration | undefined> {
    return this.#rows.get(keys.configurationKey(tenant, name));
  }

  saveConfiguration(
    tenant: string,
    configuration: StoredConfiguration,
    by: ChangeAuthor,
    how: Pick<SaveOptions, 'replaces'> = {},
  ): Promise<void> {
    const { name } = configuration;
    const key = keys.configurationKey(tenant, name);
    return this.save({ tenant, kind: 'configuration', name, key, by }, configuration, how);
  }

  async deleteConfiguration(tenant: string, configuration: StoredConfiguration, by: ChangeAuthor): Promise<void> {
    const { name } = configuration;
    const key = keys.configurationKey(tenant, name);
    await this.delete({ tenant, kind: 'configuration', name, key, by }, { replaces: configuration });
  }

  profiles(tenant: string): Promise<ProfileDefinition[]> {
    return this.#list(tenant, keys.PROFILE_PREFIX);
  }

  saveProfile(tenant: string, profile: ProfileDefinition, by: ChangeAuthor): Promise<void> {
    const { name } = profile;
    return this.save({ tenant, kind: 'profile', name, key: keys.profileKey(tenant, name), by }, profile);
  }

  saveConnection(tenant: string, connection: Connection, by: ChangeAuthor): Promise<void> {
    const { name } = connection;
    return this.save({ tenant, kind: 'connection', name, key: keys.connectionKey(tenant, name), by }, connection);
  }

  async deleteConnection(tenant: string, connection: Connection, by: ChangeAuthor): Promise<void> {
    const { name } = connection;
    const key = keys.connectionKey(tenant, name);
    await this.delete({ tenant, kind: 'connection', name, key, by }, { replaces: connection });
  }

  async savePolicies(
    tenant: string,
    policies: TenantPolicies,
    by: ChangeAuthor,
    how: ConfirmedSave<TenantPolicies> = {},
  ): Promise<void> {
    const key = keys.policiesKey(tenant);
    const saved = { tenant, kind: 'policies' as const, name: tenant, key, by };
    // A tenant that has never published policies has no row.
    const isNew = how.replaces === NO_TENANT_POLICIES && (await this.#rows.getItem(key)) === undefined;
    await this.save(saved, policies, isNew ? { ...how, replaces: null } : how);
  }

  async publishWorkflow(tenant: string, workflow: PublishedWorkflow, version: number, by: ChangeAuthor): Promise<void> {
    const key = keys.workflowKey(tenant, workflow.name, version);
    const saved = { tenant, kind: 'workflow' as const, name: `${workflow.name} v${version}`, key, by };
    if (await this.saveNew(saved, workflow)) return;
    if (canonicalJson(await this.#rows.get(key)) === canonicalJson(workflow)) return;
    throw new CountersignError(
      'WORKFLOW_INVALID',
      `version ${version} of ${workflow.name} is already published with other content; publish this as version ${version + 1}`,
    );
  }

  async #list<T>(tenant: string, prefix: string): Promise<T[]> {
    const items = await this.#rows.range(under(keys.tenantPartition(tenant), prefix));
    return items.map((item) => docOf<T>(item));
  }
}

import * as z from 'zod';
import type { ProfileDefinition } from '../agents/profiles.ts';
import type { OidcIssuer, StageIssuer } from '../entry/oidc-issuer.ts';
import type { Person } from '../people/people.ts';
import type { TenantPolicies } from '../policy/policy.ts';
import { CountersignError } from '../run/errors.ts';
import type { TenantSettings } from '../run/settings/caps.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { Automation } from './automation.ts';
import type { StoredConfiguration } from './configuration.ts';
import type { ChangeAuthor, ConfirmedSave, RecordedChanges, SaveOptions } from './definition-changes.ts';
import type { GenericSource } from './generic-source.ts';

export { Automation } from './automation.ts';

/** The address of an external system. Its credential is in Secrets Manager under the same name. */
export const Connection = z.strictObject({
  name: z.string().max(63),
  baseUrl: z.url(),
  /** The name of the instance. It is part of every idempotency key, so two instances never share a key. */
  instance: z.string().max(255),
  /** For `http`: the hosts that the http tools may call. */
  allowedHosts: z.array(z.string()).optional(),
  /** For `servicenow`: the tables that the `servicenow.record` tools may read and write. */
  allowedTables: z
    .array(z.string().regex(/^[a-z][a-z0-9_]{0,79}$/, 'the name of a table'))
    .max(100)
    .optional(),
});
export type Connection = z.infer<typeof Connection>;

export interface PublishedVersion {
  version: number;
  workflow: PublishedWorkflow;
}

/**
 * The definitions of a tenant. Workflow versions are immutable, so they can be cached for ever. Every change is recorded
 * in the same transaction; saving an unchanged definition writes and records nothing.
 */
export interface Definitions extends RecordedChanges {
  settings(tenant: string): Promise<TenantSettings>;
  automations(tenant: string): Promise<Automation[]>;
  workflow(tenant: string, name: string, version: number): Promise<PublishedWorkflow | undefined>;
  /** The versions of one workflow, newest first, below the version `before`. */
  workflowVersions(tenant: string, name: string, page: { before?: number; limit: number }): Promise<PublishedVersion[]>;
  /** The newest version of each workflow, by name, after the name `after`. */
  newestWorkflows(tenant: string, page: { after?: string; limit: number }): Promise<PublishedVersion[]>;
  /** The webhook sources of the tenant's own. */
  sources(tenant: string): Promise<GenericSource[]>;
  /** Where sessions run. */
  configurations(tenant: string): Promise<StoredConfiguration[]>;
  configuration(tenant: string, name: string): Promise<StoredConfiguration | undefined>;
  /** The profiles whose lists the tenant has defined. The others have their built-in lists. */
  profiles(tenant: string): Promise<ProfileDefinition[]>;
  connection(tenant: string, name: string): Promise<Connection | undefined>;
  connections(tenant: string): Promise<Connection[]>;
  /** The tenant's own policies, in addition to the built-in ones. */
  policies(tenant: string): Promise<TenantPolicies>;
  /** `fresh` bypasses the cache, for decisions that depend on a person's current rights. */
  people(tenant: string, read?: { fresh: boolean }): Promise<Person[]>;

  /** Also reserves the tenant's issuers: `CONFLICT` if another tenant has named the same issuer and audience. */
  saveSettings(tenant: string, settings: TenantSettings, by: ChangeAuthor): Promise<void>;
  /** The issuer with this audience that the settings of a tenant name. */
  issuer(issuer: string, audience: string): Promise<StageIssuer | undefined>;
  saveAutomation(
    tenant: string,
    automation: Automation,
    by: ChangeAuthor,
    how?: Pick<SaveOptions, 'replaces'>,
  ): Promise<void>;
  /** Deletes the automation only if nobody has changed it since. */
  deleteAutomation(tenant: string, automation: Automation, by: ChangeAuthor): Promise<void>;
  saveSource(tenant: string, source: GenericSource, by: ChangeAuthor): Promise<void>;
  deleteSource(tenant: string, name: string, by: ChangeAuthor): Promise<void>;
  /** With `replaces`: `CONFLICT` if the stored one differs. */
  saveConfiguration(
    tenant: string,
    configuration: StoredConfiguration,
    by: ChangeAuthor,
    how?: Pick<SaveOptions, 'replaces'>,
  ): Promise<void>;
  /** Deletes the configuration only if nobody has changed it since. */
  deleteConfiguration(tenant: string, configuration: StoredConfiguration, by: ChangeAuthor): Promise<void>;
  saveProfile(tenant: string, profile: ProfileDefinition, by: ChangeAuthor): Promise<void>;
  saveConnection(tenant: string, connection: Connection, by: ChangeAuthor): Promise<void>;
  /** Deletes the connection only if nobody has changed it since. */
  deleteConnection(tenant: string, connection: Connection, by: ChangeAuthor): Promise<void>;
  /** With `replaces`, which `policies` returned: `CONFLICT` if others are published now. */
  savePolicies(
    tenant: string,
    policies: TenantPolicies,
    by: ChangeAuthor,
    how?: ConfirmedSave<TenantPolicies>,
  ): Promise<void>;
  /** Publishes a version. Publishing the same content again changes nothing; other content under the same number is refused. */
  publishWorkflow(tenant: string, workflow: PublishedWorkflow, version: number, by: ChangeAuthor): Promise<void>;
}

/** One token must not be valid for two tenants. */
export const issuerTaken = ({ issuer, audience }: OidcIssuer): CountersignError =>
  new CountersignError(
    'CONFLICT',
    `another tenant of this stage uses the issuer ${issuer} with the audience ${audience}; use an audience of your own`,
  );

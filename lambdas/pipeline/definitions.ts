import * as z from 'zod';
import type { Person } from '../people/people.ts';
import type { TenantPolicies } from '../policy/policy.ts';
import type { TenantSettings } from '../run/caps.ts';
import { Expression, type PublishedWorkflow } from '../workflow/workflow.ts';
import type { ChangeAuthor, RecordedChanges } from './definition-changes.ts';

/** Policy on when to run what: which events of which source start which workflow version. */
export const Automation = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,62}$/),
  description: z.string().max(500).optional(),
  enabled: z.boolean().default(true),
  workspace: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,39}$/)
    .default('default'),
  trigger: z.strictObject({
    source: z.enum(['github', 'servicenow']),
    /** `issues.opened`, `incident.insert`; the part after the dot may be left out to mean any. */
    event: z.string().max(300),
    /** An expression over `trigger`; only a true value starts a run. */
    filter: Expression.optional(),
  }),
  workflow: z.strictObject({ name: z.string().max(63), version: z.int().positive().max(999_999) }),
});
export type Automation = z.infer<typeof Automation>;

/** Where a connector reaches a system. The credential itself lives in Secrets Manager under the same name. */
export const Connection = z.strictObject({
  name: z.string().max(63),
  baseUrl: z.url(),
  /** The system's own name for itself: part of every idempotency key, so two instances never share one. */
  instance: z.string().max(255),
  /** For `http`: the hosts that `http.request` may speak to. */
  allowedHosts: z.array(z.string()).optional(),
});
export type Connection = z.infer<typeof Connection>;

export interface PublishedVersion {
  version: number;
  workflow: PublishedWorkflow;
}

/**
 * What a tenant has defined. Workflow versions are immutable, so they may be kept for ever once read. Every change is
 * recorded in the transaction that makes it; saving what is there already changes nothing and records nothing.
 */
export interface Definitions extends RecordedChanges {
  settings(tenant: string): Promise<TenantSettings>;
  automations(tenant: string): Promise<Automation[]>;
  workflow(tenant: string, name: string, version: number): Promise<PublishedWorkflow | undefined>;
  /** The versions of one workflow, newest first; those before number `before`. */
  workflowVersions(tenant: string, name: string, page: { before?: number; limit: number }): Promise<PublishedVersion[]>;
  /** The newest version of each workflow, by name; those whose name comes after `after`. */
  newestWorkflows(tenant: string, page: { after?: string; limit: number }): Promise<PublishedVersion[]>;
  connection(tenant: string, name: string): Promise<Connection | undefined>;
  /** The tenant's own policies, beside those that ship. */
  policies(tenant: string): Promise<TenantPolicies>;
  /** `fresh` looks past what is kept in memory: where it matters who somebody is at this moment. */
  people(tenant: string, looking?: { fresh: boolean }): Promise<Person[]>;

  saveSettings(tenant: string, settings: TenantSettings, by: ChangeAuthor): Promise<void>;
  saveAutomation(tenant: string, automation: Automation, by: ChangeAuthor): Promise<void>;
  saveConnection(tenant: string, connection: Connection, by: ChangeAuthor): Promise<void>;
  savePolicies(tenant: string, policies: TenantPolicies, by: ChangeAuthor): Promise<void>;
  /** Publishes version `version`; the identical one again changes nothing, another one under its number is refused. */
  publishWorkflow(tenant: string, workflow: PublishedWorkflow, version: number, by: ChangeAuthor): Promise<void>;
}

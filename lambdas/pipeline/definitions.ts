import * as z from 'zod';
import type { TenantSettings } from '../run/caps.ts';
import { Expression, type Workflow } from '../workflow/workflow.ts';

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
    event: z.string(),
    /** An expression over `trigger`; only a true value starts a run. */
    filter: Expression.optional(),
  }),
  workflow: z.strictObject({ name: z.string(), version: z.int().positive() }),
});
export type Automation = z.infer<typeof Automation>;

/** Where a connector reaches a system. The credential itself lives in Secrets Manager under the same name. */
export const Connection = z.strictObject({
  name: z.string(),
  baseUrl: z.url(),
  /** The system's own name for itself: part of every idempotency key, so two instances never share one. */
  instance: z.string(),
});
export type Connection = z.infer<typeof Connection>;

/** What a tenant has defined. Workflow versions are immutable, so they may be kept for ever once read. */
export interface Definitions {
  settings(tenant: string): Promise<TenantSettings>;
  automations(tenant: string): Promise<Automation[]>;
  workflow(tenant: string, name: string, version: number): Promise<Workflow | undefined>;
  connection(tenant: string, name: string): Promise<Connection | undefined>;

  saveSettings(tenant: string, settings: TenantSettings): Promise<void>;
  saveAutomation(tenant: string, automation: Automation): Promise<void>;
  saveConnection(tenant: string, connection: Connection): Promise<void>;
  /** Publishes version `version`; the identical one again changes nothing, another one under its number is refused. */
  publishWorkflow(tenant: string, workflow: Workflow, version: number): Promise<void>;
}

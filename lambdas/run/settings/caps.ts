import * as z from 'zod';
import { ISSUERS_MAX, OidcIssuer, repeatedIssuer } from '../../entry/oidc-issuer.ts';
import { sha256Hex } from '../canonical-json.ts';
import { CountersignError } from '../errors.ts';
import type { Run, Slot } from '../run.ts';
import { isOn } from './flags.ts';
import { Flags } from './flags-schema.ts';

/** Limits of a tenant or workflow. A cap that is not set has no counter. */
export const Caps = z.strictObject({
  maxConcurrency: z.int().min(1).optional().describe('How many runs may be `running` at once.'),
  maxRunsPerMinute: z.int().min(1).optional().describe('How many runs may start in a minute.'),
  maxWritesPerRun: z.int().min(1).optional().describe('How many writes a run may make.'),
});
export type Caps = z.infer<typeof Caps>;

/** Unless `maxActionsPerMinute` says otherwise: more than a person or an assistant that they watch needs. */
export const ACTIONS_PER_MINUTE_DEFAULT = 60;

const TenantCaps = Caps.extend({
  maxActionsPerMinute: z
    .int()
    .min(1)
    .optional()
    .describe(
      `How many actions one person or program may propose in a minute, outside sessions. Default ${ACTIONS_PER_MINUTE_DEFAULT}.`,
    ),
});

/** The counter of a caller. No workflow has a name with a colon. */
export const callerCounter = (person: string): string => `caller:${person}`;

export const TenantSettings = z.strictObject({
  caps: TenantCaps.default({}),
  /** Capacity units: a workspace with 3 gets three times the slots of one with 1 if both need more. */
  workspaces: z.record(z.string(), z.int().min(1)).default({}),
  /** One counter allows about 1,000 changes per second. A busier tenant needs several. */
  counterShards: z.int().min(1).max(20).default(1),
  /** Parts of the product that a tenant may switch off, under the names of source 001, 8.1. */
  features: Flags.optional(),
  /** The Slack channel for approvals, unless the workflow names one. */
  approvalsChannel: z.string().min(1).max(80).optional(),
  /** The automation that messages to the app in Slack start. */
  slackAutomation: z.string().min(1).max(63).optional(),
  /** After this many minutes the digest of overdue approvals is repeated for those that are still open. Default 60. */
  overdueDigestMinutes: z.int().min(10).max(1_440).optional(),
  /**
   * Further OIDC issuers that sign in people of this tenant, beside those of the stage. The operator of an issuer can
   * act as any person that it may sign in. So only owners change them, and a prod stage has none: there, cdk.json names them.
   */
  issuers: z
    .array(OidcIssuer)
    .max(ISSUERS_MAX)
    .refine(
      (issuers) => !repeatedIssuer(issuers),
      'each issuer needs its own name, and its own pair of issuer and audience',
    )
    .optional(),
});
export type TenantSettings = z.infer<typeof TenantSettings>;
export const NO_SETTINGS: TenantSettings = { caps: {}, workspaces: {}, counterShards: 1 };

export const agentsAreEnabled = (settings: TenantSettings): boolean => isOn(settings, 'worker_orchestration.enabled');

/** A change of a counter or lock that a commit makes, if there is a free slot. */
export type CapWrite =
  | { kind: 'take_slot'; slot: Slot; max: number }
  | { kind: 'return_slot'; slot: Slot }
  | { kind: 'count_start'; minute: string; max: number; workflow?: string }
  | { kind: 'take_key'; key: string; runId: string }
  | { kind: 'release_key'; key: string; runId: string };

/** The lower limit of tenant, workflow and automation. Slots and starts have a counter for each of them. */
export function effectiveCaps(tenant: Caps, workflow: Caps = {}, automation: Caps = {}): Caps {
  const lowest = (cap: keyof Caps) => {
    const set = [tenant, workflow, automation].flatMap((caps) => caps[cap] ?? []);
    return set.length > 0 ? Math.min(...set) : undefined;
  };
  return {
    maxConcurrency: lowest('maxConcurrency'),
    maxRunsPerMinute: lowest('maxRunsPerMinute'),
    maxWritesPerRun: lowest('maxWritesPerRun'),
  };
}

/** True if another waiting run may get a slot, although this one did not. */
export function othersMayStart(refused: readonly CapWrite[], tenantShards: number): boolean {
  return refused.every((write) => {
    if (write.kind === 'take_slot') return write.slot.workflow !== undefined || tenantShards > 1;
    return write.kind === 'count_start' ? write.workflow !== undefined : true;
  });
}

/** The number of writes including this one. Throws if it exceeds the cap. */
export function withOneMoreWrite(writes: number, { maxWritesPerRun }: Caps): number {
  if (maxWritesPerRun === undefined || writes < maxWritesPerRun) return writes + 1;
  throw new CountersignError(
    'CAP_EXCEEDED',
    `this write would exceed the ${maxWritesPerRun} writes that a run may make (maxWritesPerRun)`,
  );
}

/** Takes a slot of the tenant or, with `workflow`, of that workflow. */
export function takeSlot(
  run: Pick<Run, 'runId' | 'workspace'>,
  maxConcurrency: number,
  counterShards: number,
  workflow?: string,
): CapWrite & { kind: 'take_slot' } {
  const shards = usableShards(maxConcurrency, counterShards);
  const shard = shardOf(run.runId, shards);
  const slot = { shard, workspace: run.workspace, ...(workflow !== undefined && { workflow }) };
  return { kind: 'take_slot', slot, max: slotsOfShard(maxConcurrency, shards, shard) };
}

/** The slots of one shard, at least one. All shards together have exactly the cap. */
export function slotsOfShard(maxConcurrency: number, shards: number, shard: number): number {
  return Math.max(1, Math.floor(maxConcurrency / shards) + (shard < maxConcurrency % shards ? 1 : 0));
}

/** The number of shards that a cap can be divided into with at least one slot each. */
export function usableShards(maxConcurrency: number, shards: number): number {
  return Math.min(shards, maxConcurrency);
}

/** A run that waits for a slot. */
export interface Waiting {
  runId: string;
  workspace: string;
  createdAt: string;
}

/** The next run to start: of the workspace with the lowest load per unit, the one that waits longest. */
export function nextInLine(
  waiting: readonly Waiting[],
  running: Readonly<Record<string, number>>,
  units: Readonly<Record<string, number>>,
): Waiting | undefined {
  const load = (workspace: string) => (running[workspace] ?? 0) / (units[workspace] ?? 1);
  return [...waiting].sort(
    (a, b) =>
      load(a.workspace) - load(b.workspace) || (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0),
  )[0];
}

/** Distributes ids evenly over shards. The same id always gets the same shard. */
export function shardOf(id: string, shards: number): number {
  return Number.parseInt(sha256Hex(id).slice(0, 8), 16) % shards;
}

import * as z from 'zod';
import { sha256Hex } from './canonical-json.ts';
import { CountersignError } from './errors.ts';
import type { Run, Slot } from './run.ts';

/** How much of a tenant may happen at once. A cap that is not set costs nothing: no counter is written. */
export const Caps = z.strictObject({
  /** Runs in `running` at once. */
  maxConcurrency: z.int().min(1).optional(),
  maxRunsPerMinute: z.int().min(1).optional(),
  maxWritesPerRun: z.int().min(1).optional(),
});
export type Caps = z.infer<typeof Caps>;

export const TenantSettings = z.strictObject({
  caps: Caps.default({}),
  /** Capacity units: a workspace with 3 gets three times the places of one with 1 when both want more. */
  workspaces: z.record(z.string(), z.int().min(1)).default({}),
  /** One counter takes some 1,000 changes a second; a busier tenant spreads its places over several. */
  counterShards: z.int().min(1).max(20).default(1),
  /** Where approvals are asked for, unless the workflow says otherwise. */
  approvalsChannel: z.string().min(1).max(80).optional(),
});
export type TenantSettings = z.infer<typeof TenantSettings>;
export const NO_SETTINGS: TenantSettings = { caps: {}, workspaces: {}, counterShards: 1 };

/** A counter or a lock that a commit moves, on the condition that there is room. */
export type CapWrite =
  | { kind: 'take_slot'; slot: Slot; max: number }
  | { kind: 'return_slot'; slot: Slot }
  | { kind: 'count_start'; minute: string; max: number; workflow?: string }
  | { kind: 'take_key'; key: string; runId: string }
  | { kind: 'release_key'; key: string; runId: string };

/** The lower of what tenant and workflow allow. For slots and starts both hold, each with a counter of its own. */
export function effectiveCaps(tenant: Caps, workflow: Caps = {}): Caps {
  const lower = (a?: number, b?: number) => (a === undefined ? b : b === undefined ? a : Math.min(a, b));
  return {
    maxConcurrency: lower(tenant.maxConcurrency, workflow.maxConcurrency),
    maxRunsPerMinute: lower(tenant.maxRunsPerMinute, workflow.maxRunsPerMinute),
    maxWritesPerRun: lower(tenant.maxWritesPerRun, workflow.maxWritesPerRun),
  };
}

/** Whether only this run has no slot: another one that waits may still find one. */
export function othersMayStart(refused: readonly CapWrite[], tenantShards: number): boolean {
  return refused.every((write) => {
    if (write.kind === 'take_slot') return write.slot.workflow !== undefined || tenantShards > 1;
    return write.kind === 'count_start' ? write.workflow !== undefined : true;
  });
}

/** How many writes a run has made with this one; one too many is refused. */
export function withOneMoreWrite(writes: number, { maxWritesPerRun }: Caps): number {
  if (maxWritesPerRun === undefined || writes < maxWritesPerRun) return writes + 1;
  throw new CountersignError('CAP_EXCEEDED', `a run may make ${maxWritesPerRun} writes, and this would be one more`);
}

/** Takes one of the tenant's slots or, with a workflow, one of that workflow's own. */
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

/** The places of one shard: all shards together have exactly the cap, and none has nothing. */
export function slotsOfShard(maxConcurrency: number, shards: number, shard: number): number {
  return Math.max(1, Math.floor(maxConcurrency / shards) + (shard < maxConcurrency % shards ? 1 : 0));
}

/** How many shards a cap can be spread over without handing out more places than it has. */
export function usableShards(maxConcurrency: number, shards: number): number {
  return Math.min(shards, maxConcurrency);
}

/** Where a waiting run stands: its workspace and since when. */
export interface Waiting {
  runId: string;
  workspace: string;
  createdAt: string;
}

/** Whose turn it is: the workspace that has least for its units; within it, who has waited longest. */
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

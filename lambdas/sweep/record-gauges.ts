import { type Clock, isoNow } from '../entry/ports.ts';
import type { RunStore } from '../run/run-store.ts';
import { METRICS, type Metrics, measured } from '../telemetry/metrics.ts';
import type { Swept } from './sweep.ts';

export interface Gauges {
  runs: Pick<RunStore, 'countPendingApprovals' | 'recordSweep'>;
  tenants: readonly string[];
  metrics: Metrics;
  clock: Clock;
}

/**
 * Records the current state of the stage for the dashboard and its alarms, and of each tenant for its status. Counting approvals is one small query per
 * tenant, and the status one small write: with 20 tenants and once a minute, about 0.6 USD a month.
 *
 * Throws if a shard of the due index could not be read: it may contain the oldest due row, so a gauge of 0 could be wrong.
 * The failed invocation raises an alarm.
 */
export async function recordGauges(
  gauges: Gauges,
  { oldestDueAt, unreadShards, tenants: found }: Pick<Swept, 'oldestDueAt' | 'unreadShards' | 'tenants'>,
): Promise<void> {
  const { runs, tenants, metrics, clock } = gauges;
  const dueForMs = oldestDueAt === undefined ? 0 : Math.max(0, clock.now() - Date.parse(oldestDueAt));
  if (oldestDueAt !== undefined || !unreadShards) {
    metrics.record(measured(METRICS.oldestDueSeconds, dueForMs / 1000, {}));
  }
  const waiting = await Promise.all(tenants.map((tenant) => runs.countPendingApprovals(tenant)));
  const value = waiting.reduce((sum, each) => sum + each, 0);
  metrics.record(measured(METRICS.approvalsWaiting, value, {}));
  const at = isoNow(clock);
  if (!unreadShards) {
    await Promise.all(tenants.map((tenant) => runs.recordSweep(tenant, { at, due: 0, ...found[tenant] })));
  }
  if (unreadShards)
    throw new Error(`${unreadShards} shards of the due index could not be read; the log has the errors`);
}

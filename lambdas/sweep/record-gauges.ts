import { METRICS, type Metrics } from '../entry/metrics.ts';
import type { Clock } from '../entry/ports.ts';
import type { RunStore } from '../run/run-store.ts';
import type { Swept } from './sweep.ts';

export interface Gauges {
  runs: Pick<RunStore, 'countPendingApprovals'>;
  tenants: readonly string[];
  metrics: Metrics;
  clock: Clock;
}

/**
 * Records the current state of the stage for the dashboard and its alarms. Counting approvals is one small query per
 * tenant: with 20 tenants and once a minute, about 0.05 USD a month.
 *
 * Throws if a shard of the due index could not be read: it may contain the oldest due row, so a gauge of 0 could be wrong.
 * The failed invocation raises an alarm.
 */
export async function recordGauges(
  gauges: Gauges,
  { oldestDueAt, unreadShards }: Pick<Swept, 'oldestDueAt' | 'unreadShards'>,
): Promise<void> {
  const { runs, tenants, metrics, clock } = gauges;
  const dueForMs = oldestDueAt === undefined ? 0 : Math.max(0, clock.now() - Date.parse(oldestDueAt));
  if (oldestDueAt !== undefined || !unreadShards) {
    metrics.record({ name: METRICS.oldestDueSeconds, value: dueForMs / 1000, unit: 'Seconds' });
  }
  const waiting = await Promise.all(tenants.map((tenant) => runs.countPendingApprovals(tenant)));
  const value = waiting.reduce((sum, each) => sum + each, 0);
  metrics.record({ name: METRICS.approvalsWaiting, value, unit: 'Count' });
  if (unreadShards)
    throw new Error(`${unreadShards} shards of the due index could not be read; the log has the errors`);
}

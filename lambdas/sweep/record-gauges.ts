import { METRICS, type Metrics } from '../entry/metrics.ts';
import type { Clock } from '../entry/ports.ts';
import type { RunStore } from '../run/run-store.ts';

export interface Gauges {
  runs: Pick<RunStore, 'countPendingApprovals'>;
  tenants: readonly string[];
  metrics: Metrics;
  clock: Clock;
}

/**
 * What the stage is like right now, for the dashboard and its alarms. Counting approvals is one small query for each
 * tenant: at 20 tenants and once a minute, about 0.05 USD a month.
 */
export async function recordGauges(gauges: Gauges, oldestDueAt: string | undefined): Promise<void> {
  const { runs, tenants, metrics, clock } = gauges;
  const dueForMs = oldestDueAt === undefined ? 0 : Math.max(0, clock.now() - Date.parse(oldestDueAt));
  metrics.record({ name: METRICS.oldestDueSeconds, value: dueForMs / 1000, unit: 'Seconds' });
  const waiting = await Promise.all(tenants.map((tenant) => runs.countPendingApprovals(tenant)));
  const value = waiting.reduce((sum, each) => sum + each, 0);
  metrics.record({ name: METRICS.approvalsWaiting, value, unit: 'Count' });
}

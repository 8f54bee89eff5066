import { METRICS, type Metrics } from '../entry/metrics.ts';
import type { Clock } from '../entry/ports.ts';
import type { RunStore } from '../run/run-store.ts';

/** Approvals wait for minutes to hours: counting them every five minutes is enough, and a fifth of the cost. */
const APPROVALS_COUNTED_EVERY_MINUTES = 5;

export interface Gauges {
  runs: Pick<RunStore, 'countPendingApprovals'>;
  tenants: readonly string[];
  metrics: Metrics;
  clock: Clock;
}

/** What the stage is like right now, for the dashboard and its alarms. */
export async function recordGauges(gauges: Gauges, oldestDueAt: string | undefined): Promise<void> {
  const { runs, tenants, metrics, clock } = gauges;
  const now = clock.now();
  const oldestDueSeconds = oldestDueAt === undefined ? 0 : Math.max(0, (now - Date.parse(oldestDueAt)) / 1000);
  metrics.record({ name: METRICS.oldestDueSeconds, value: oldestDueSeconds, unit: 'Seconds' });
  if (new Date(now).getUTCMinutes() % APPROVALS_COUNTED_EVERY_MINUTES !== 0) return;
  const waiting = await Promise.all(tenants.map((tenant) => runs.countPendingApprovals(tenant)));
  const value = waiting.reduce((sum, each) => sum + each, 0);
  metrics.record({ name: METRICS.approvalsWaiting, value, unit: 'Count' });
}

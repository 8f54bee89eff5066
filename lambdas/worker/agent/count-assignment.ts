import { counted, METRICS, type Metrics } from '../../telemetry/metrics.ts';

/** `worker_assignments_total` of source 001, 6.1. Agents are no dimension: AWS bills each combination as a metric. */
export function countAssignment(
  { metrics }: { metrics?: Metrics },
  status: 'offered' | 'acknowledged' | 'withdrawn' | 'refused' | 'completed' | 'lost' | 'no_agent',
): void {
  metrics?.record(counted(METRICS.workerAssignments, { status }));
}

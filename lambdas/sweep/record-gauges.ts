import { stateOf } from '../agents/agent.ts';
import { type AgentRegistry, allAgents } from '../agents/agent-registry.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import type { LiveStore } from '../live/live-store.ts';
import { ACTIVE_STATUSES } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import { METRICS, type Metrics, measured } from '../telemetry/metrics.ts';
import type { Swept } from './sweep.ts';

/** A gauge shows that there are many; nobody needs the exact number of more. One page of the index. */
const RUNS_COUNTED_MAX = 5_000;

export interface Gauges {
  runs: Pick<RunStore, 'countPendingApprovals' | 'countRuns' | 'recordSweep'>;
  agents: Pick<AgentRegistry, 'agents'>;
  /** Absent in a stage without the live feed. */
  live?: Pick<LiveStore, 'openConnections'>;
  tenants: readonly string[];
  metrics: Metrics;
  clock: Clock;
}

/**
 * Records the current state of the stage for the dashboard and its alarms, and of each tenant for its status. These are
 * twelve small queries per tenant, and the status one small write: with 20 tenants and once a minute, about 2 USD a month.
 * A gauge by status has no value where there is nothing: each one with values costs 0.30 USD a month.
 *
 * Throws if a shard of the due index could not be read: it may contain the oldest due row, so a gauge of 0 could be wrong.
 * The failed invocation raises an alarm.
 */
export async function recordGauges(
  gauges: Gauges,
  { oldestDueAt, unreadShards, tenants: found }: Pick<Swept, 'oldestDueAt' | 'unreadShards' | 'tenants'>,
): Promise<void> {
  const { runs, live, tenants, metrics, clock } = gauges;
  const dueForMs = oldestDueAt === undefined ? 0 : Math.max(0, clock.now() - Date.parse(oldestDueAt));
  const oldest = measured(METRICS.oldestDueSeconds, dueForMs / 1000, {});
  const [waiting, open, byStatus, byState] = await Promise.all([
    sumOver(tenants, (tenant) => runs.countPendingApprovals(tenant)),
    live ? sumOver(tenants, (tenant) => live.openConnections(tenant)) : undefined,
    activeRuns(gauges),
    agentsByState(gauges),
  ]);
  metrics.record(
    ...(oldestDueAt !== undefined || !unreadShards ? [oldest] : []),
    measured(METRICS.approvalsWaiting, waiting, {}),
    ...(open === undefined ? [] : [measured(METRICS.openSockets, open, {})]),
    ...byStatus.map(({ status, count }) => measured(METRICS.activeRuns, count, { status })),
    ...byState.map(({ status, count }) => measured(METRICS.agents, count, { status })),
  );
  const at = isoNow(clock);
  if (!unreadShards) {
    await Promise.all(Object.entries(found).map(([tenant, swept]) => runs.recordSweep(tenant, { at, ...swept })));
  }
  if (unreadShards)
    throw new Error(`${unreadShards} shards of the due index could not be read; the log has the errors`);
}

async function activeRuns({ runs, tenants }: Gauges) {
  const found = await Promise.all(
    tenants.map((tenant) =>
      runs.countRuns(
        tenant,
        ACTIVE_STATUSES.map((status) => ({ status })),
        RUNS_COUNTED_MAX,
      ),
    ),
  );
  const total = ACTIVE_STATUSES.map((status, index) => ({
    status,
    count: sum(found.map((each) => each[index]?.count ?? 0)),
  }));
  return total.filter(({ count }) => count > 0);
}

async function agentsByState({ agents, tenants, clock }: Gauges) {
  const at = isoNow(clock);
  const found = await Promise.all(tenants.map((tenant) => allAgents(agents, tenant)));
  const states = found.flat().map((agent) => stateOf(agent, at));
  return [...new Set(states)].map((status) => ({ status, count: states.filter((each) => each === status).length }));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
const sumOver = async (tenants: readonly string[], count: (tenant: string) => Promise<number>) =>
  sum(await Promise.all(tenants.map(count)));

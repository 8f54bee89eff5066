import { expect, it } from 'vitest';
import { recordGauges } from '../../lambdas/sweep/record-gauges.ts';
import type { Swept } from '../../lambdas/sweep/sweep.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryRunStore } from '../fakes/memory/memory-run-store.ts';
import { MemoryTelemetry } from '../fakes/memory/memory-telemetry.ts';

const CLOCK = new FakeClock('2026-03-01T10:01:00.000Z');
const ACTIVE: Record<string, Record<string, number>> = { acme: { running: 2, paused: 1 }, globex: { running: 3 } };
const PENDING: Record<string, number> = { acme: 3, globex: 4 };

/** The metrics after the gauges were recorded once. */
async function recorded(oldestDueAt?: string, unreadShards?: number, metrics = new MemoryTelemetry(CLOCK)) {
  const clock = CLOCK;
  const store = new MemoryRunStore();
  const runs = {
    countPendingApprovals: async (tenant: string) => PENDING[tenant] ?? 0,
    countRuns: async (tenant: string, filters: readonly { status?: string }[]) =>
      filters.map(({ status }) => ({ count: ACTIVE[tenant]?.[status ?? ''] ?? 0 })),
    recordSweep: store.recordSweep.bind(store),
  };
  const live = { openConnections: async () => 2 };
  const acme = oldestDueAt === undefined ? { due: 0 } : { due: 2, oldestDueAt };
  const tenants: Swept['tenants'] = { acme, globex: { due: 0 } };
  const ports = { runs, live, agents: store.agents, tenants: Object.keys(PENDING), metrics, clock };
  await recordGauges(ports, { oldestDueAt, unreadShards, tenants });
  expect([await store.lastSweep('acme'), await store.lastSweep('globex')]).toEqual([
    { at: '2026-03-01T10:01:00.000Z', ...acme },
    { at: '2026-03-01T10:01:00.000Z', due: 0 },
  ]);
  return metrics.metrics.map(({ name, unit, max }) => [name, unit, max]);
}

it('records how long the oldest row has been due, and 0 if nothing is due', async () => {
  const shown = (await recorded('2026-03-01T09:50:30.000Z'))[0];
  expect(shown).toEqual(['OldestDueSeconds', 'Seconds', 630]);
  expect((await recorded())[0]).toEqual(['OldestDueSeconds', 'Seconds', 0]);
});

it('records the number of pending approvals of all tenants', async () => {
  expect((await recorded())[1]).toEqual(['ApprovalsWaiting', 'Count', 7]);
});

it('records runs by status and open connections; a status without runs has no value', async () => {
  expect((await recorded()).slice(2)).toEqual([
    ['websocket_active_sessions', 'Count', 4],
    ['gwi_run_active_gauge', 'Count', 5],
    ['gwi_run_active_gauge', 'Count', 1],
  ]);
});

it('fails and records no 0 if a shard could not be read', async () => {
  const collected = new MemoryTelemetry(CLOCK);
  await expect(recorded(undefined, 2, collected)).rejects.toThrow('2 shards of the due index could not be read');
  expect(collected.metrics.map(({ name }) => name)).not.toContain('OldestDueSeconds');
  expect(collected.metrics.map(({ name }) => name)).toContain('ApprovalsWaiting');
  await expect(recorded('2026-03-01T09:50:30.000Z', 1, collected)).rejects.toThrow('1 shards');
  expect(collected.metrics.map(({ name }) => name)).toContain('OldestDueSeconds');
});

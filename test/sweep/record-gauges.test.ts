import { expect, it } from 'vitest';
import { recordGauges } from '../../lambdas/sweep/record-gauges.ts';
import type { Swept } from '../../lambdas/sweep/sweep.ts';
import { EmbeddedMetrics } from '../../lambdas/telemetry/embedded-metrics.ts';
import { Metrics as CollectedMetrics } from '../../local/lambda/metrics.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryRunStore } from '../fakes/memory-run-store.ts';

const PENDING: Record<string, number> = { acme: 3, globex: 4 };

/** The metrics after the gauges were recorded once. */
async function recorded(oldestDueAt?: string, unreadShards?: number, collected = new CollectedMetrics()) {
  const clock = new FakeClock('2026-03-01T10:01:00.000Z');
  const store = new MemoryRunStore();
  const runs = {
    countPendingApprovals: async (tenant: string) => PENDING[tenant] ?? 0,
    recordSweep: store.recordSweep.bind(store),
  };
  const metrics = new EmbeddedMetrics('acme-prod', clock, (line) => collected.collect('Sweeper', line));
  const tenants: Swept['tenants'] = oldestDueAt === undefined ? {} : { acme: { due: 2, oldestDueAt } };
  await recordGauges({ runs, tenants: Object.keys(PENDING), metrics, clock }, { oldestDueAt, unreadShards, tenants });
  expect([await store.lastSweep('acme'), await store.lastSweep('globex')]).toEqual([
    { at: '2026-03-01T10:01:00.000Z', due: 0, ...tenants.acme },
    { at: '2026-03-01T10:01:00.000Z', due: 0 },
  ]);
  return collected.list().map(({ namespace, name, unit, max }) => [namespace, name, unit, max]);
}

it('records how long the oldest row has been due, and 0 if nothing is due', async () => {
  const shown = (await recorded('2026-03-01T09:50:30.000Z'))[0];
  expect(shown).toEqual(['Countersign/acme-prod', 'OldestDueSeconds', 'Seconds', 630]);
  expect((await recorded())[0]).toEqual(['Countersign/acme-prod', 'OldestDueSeconds', 'Seconds', 0]);
});

it('records the number of pending approvals of all tenants', async () => {
  expect((await recorded())[1]).toEqual(['Countersign/acme-prod', 'ApprovalsWaiting', 'Count', 7]);
});

it('fails and records no 0 if a shard could not be read', async () => {
  const collected = new CollectedMetrics();
  await expect(recorded(undefined, 2, collected)).rejects.toThrow('2 shards of the due index could not be read');
  expect(collected.list().map(({ name }) => name)).toEqual(['ApprovalsWaiting']);
  await expect(recorded('2026-03-01T09:50:30.000Z', 1, collected)).rejects.toThrow('1 shards');
  expect(collected.list().map(({ name }) => name)).toContain('OldestDueSeconds');
});

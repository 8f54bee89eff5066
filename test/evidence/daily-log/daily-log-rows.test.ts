import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DailyLogRows } from '../../../lambdas/evidence/daily-log/close-days.ts';
import { DynamoDailyLog } from '../../../lambdas/evidence/daily-log/dynamo-daily-log.ts';
import { DynamoRunStore } from '../../../lambdas/run/dynamo/dynamo-run-store.ts';
import { dayOf, type LogEntry } from '../../../lambdas/run/log-entry.ts';
import { openRunTable } from '../../contracts/run-store/run-table.ts';
import { allOf } from '../../fakes/all-of.ts';
import { FakeClock } from '../../fakes/fake-clock.ts';
import { undisturbed } from '../../fakes/passage.ts';
import { MemoryDailyLog } from './logged-days.ts';

interface Opened {
  rows: DailyLogRows;
  /** As the run store does it. */
  seal(tenant: string, entry: LogEntry): Promise<void>;
  close(): Promise<void>;
}

const sealed = (runId: string, sealedAt: string, sha256 = 'a'.repeat(64)): LogEntry => ({
  runId,
  sha256,
  head: 'b'.repeat(64),
  count: 7,
  sealedAt,
});

const PAUSE = { random: () => 0, sleep: async () => {} };

const opened: [string, () => Promise<Opened>][] = [
  [
    'in memory',
    async () => {
      const rows = new MemoryDailyLog(undisturbed);
      const seal = async (tenant: string, entry: LogEntry) => {
        const there = (await allOf(rows.entries(tenant, dayOf(entry.sealedAt)))).some(
          ({ runId }) => runId === entry.runId,
        );
        if (!there) rows.enter(tenant, entry);
      };
      return { rows, seal, close: async () => {} };
    },
  ],
  [
    'in DynamoDB',
    async () => {
      const { client, table, close } = await openRunTable();
      const runs = new DynamoRunStore(client, table, PAUSE, new FakeClock());
      const seal = (tenant: string, logged: LogEntry) => {
        const { runId, sha256, sealedAt } = logged;
        const record = { documentKey: 'd', envelopeKey: 'e', sha256, sizeBytes: 1, sealedAt };
        return runs.completeSeal(`${tenant}.${runId}.seal_evidence`, tenant, runId, record, {
          logged,
          outboxEntries: [],
        });
      };
      return { rows: new DynamoDailyLog(client, table), seal, close };
    },
  ],
];

describe.each(opened)('the rows of the daily log %s', (_where, open) => {
  let rows: DailyLogRows;
  let seal: Opened['seal'];
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ rows, seal, close } = await open());
  });
  afterAll(() => close());

  it('have a bundle once, in the day on which it was sealed, for its own tenant', async () => {
    const first = sealed('run_a', '2026-03-01T23:59:59.999Z');
    await seal('acme', first);
    await seal('acme', { ...first, sha256: 'c'.repeat(64) });
    await seal('acme', sealed('run_b', '2026-03-02T00:00:00.000Z'));
    await seal('globex', sealed('run_c', '2026-03-01T12:00:00.000Z'));
    expect(await allOf(rows.entries('acme', '2026-03-01'))).toEqual([first]);
    expect((await allOf(rows.entries('acme', '2026-03-02'))).map(({ runId }) => runId)).toEqual(['run_b']);
    expect((await allOf(rows.entries('globex', '2026-03-01'))).map(({ runId }) => runId)).toEqual(['run_c']);
    expect(await allOf(rows.entries('acme', '2026-03-03'))).toEqual([]);
  });

  it('have the newest closed day of each tenant', async () => {
    expect(await rows.lastClosed('acme')).toBeUndefined();
    await rows.saveLastClosed('acme', { day: '2026-03-01', sha256: 'd'.repeat(64) });
    await rows.saveLastClosed('acme', { day: '2026-03-02', sha256: 'e'.repeat(64) });
    expect(await rows.lastClosed('acme')).toEqual({ day: '2026-03-02', sha256: 'e'.repeat(64) });
    expect(await rows.lastClosed('globex')).toBeUndefined();
  });
});

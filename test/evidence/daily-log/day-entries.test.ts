import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { buildDayLog, documentOf } from '../../../lambdas/evidence/daily-log/daily-log.ts';
import { DayEntries, entriesIn } from '../../../lambdas/evidence/daily-log/day-entries.ts';
import { leafHash, merkleRoot } from '../../../lambdas/evidence/daily-log/merkle.ts';
import { SMALL_YOUNG_GENERATION } from '../../../lambdas/evidence/environment.ts';
import { sha256Hex } from '../../../lambdas/run/canonical-json.ts';
import type { LogEntry } from '../../../lambdas/run/log-entry.ts';
import { IS_STORM } from '../../storm.ts';

const Entry = fc
  .record({ number: fc.nat(1_000_000), second: fc.nat(86_399), count: fc.integer({ min: 1, max: 999 }) })
  .map(({ number, second, count }): LogEntry => {
    const runId = `run_${number.toString(16).padStart(8, '0')}`;
    const sealedAt = new Date(Date.parse('2026-03-01') + second * 1000).toISOString();
    return { runId, sha256: sha256Hex(runId), head: sha256Hex(`${runId} head`), count, sealedAt };
  });
const Entries = fc.uniqueArray(Entry, { selector: ({ runId }) => runId, maxLength: 40 });
const facts = { tenant: 'acme', day: '2026-03-01', previous: { day: '2026-02-28', sha256: sha256Hex('before') } };

function of(entries: LogEntry[]): DayEntries {
  const all = new DayEntries();
  for (const entry of entries) all.add(entry);
  return all;
}

it('a day that is written entry by entry has the same bytes as one written at once, and can be read', () => {
  fc.assert(
    fc.property(Entries, (entries) => {
      const whole = buildDayLog({ ...facts, entries });
      const { head, document } = of(entries).log(facts);
      expect(document.equals(documentOf(whole))).toBe(true);
      expect(head).toEqual({ ...whole, entries: undefined });
      expect([...entriesIn(document)]).toEqual(whole.entries);
    }),
  );
});

it('contains another day if and only if it has all of its entries', () => {
  fc.assert(
    fc.property(Entries, fc.nat(), (entries, which) => {
      expect(of(entries).haveAll(of(entries.slice(1)))).toBe(true);
      const changed = entries[which % (entries.length || 1)];
      if (!changed) return;
      expect(of(entries).haveAll(of([{ ...changed, sha256: sha256Hex('another') }]))).toBe(false);
      expect(of(entries.filter((entry) => entry !== changed)).haveAll(of([changed]))).toBe(false);
    }),
  );
});

it.each(['', '{}', '{"entries":[', '{"entries":[{}]}', '{"entries":[{"runId":"r"', '{"entries":[1,2]}'])(
  'what is no log, such as %s, is not read as one',
  (text) => {
    expect(() => [...entriesIn(Buffer.from(text))]).toThrow();
  },
);

it('the root of leaves that are added one by one is that of RFC 6962, section 2.1', () => {
  const hash = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();
  const byDefinition = (leaves: Buffer[]): Buffer => {
    if (leaves.length < 2) return leaves[0] ?? hash();
    const left = 2 ** Math.floor(Math.log2(leaves.length - 1));
    return hash(Buffer.from([1]), byDefinition(leaves.slice(0, left)), byDefinition(leaves.slice(left)));
  };
  for (let size = 0; size <= 70; size += 1) {
    const leaves = Array.from({ length: size }, (_, index) => leafHash(Buffer.from(String(index))));
    expect(merkleRoot(leaves).equals(byDefinition(leaves)), `of ${size}`).toBe(true);
  }
});

/** The largest day has 200,000 bundles in a function of 512 MiB: `npm run storm`. A quarter of it shows the same per bundle. */
const DAY = IS_STORM
  ? { bundles: 200_000, heapMaxMib: 128, memoryMaxMib: 400 }
  : { bundles: 50_000, heapMaxMib: 48, memoryMaxMib: 200 };

it(`days of ${DAY.bundles} bundles are closed, and closed again after a crash, within their share of memory`, async () => {
  const script = join(import.meta.dirname, 'close-largest-day.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [
    `--max-old-space-size=${DAY.heapMaxMib}`,
    SMALL_YOUNG_GENERATION,
    script,
    String(DAY.bundles),
  ]);
  const { peakMib, ...closed } = JSON.parse(stdout);
  expect(closed).toEqual({
    closed: ['2026-03-01', '2026-03-02', '2026-03-02'],
    entries: DAY.bundles,
    isRecorded: true,
    bytes: expect.any(Number),
  });
  expect(closed.bytes).toBeGreaterThan(DAY.bundles * 200);
  expect(peakMib).toBeLessThan(DAY.memoryMaxMib);
}, 300_000);

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { effectiveCaps, nextInLine, slotOf, slotsOfShard, usableShards, type Waiting } from '../../lambdas/run/caps.ts';

const waiting = (runId: string, workspace: string, minute: number): Waiting => ({
  runId,
  workspace,
  createdAt: `2026-01-02T03:${String(minute).padStart(2, '0')}:00.000Z`,
});

describe('the waiting line', () => {
  it('is empty when nobody waits', () => {
    expect(nextInLine([], {}, {})).toBeUndefined();
  });

  it('lets the one that has waited longest go first', () => {
    const line = [waiting('second', 'a', 2), waiting('first', 'a', 1), waiting('third', 'a', 3)];
    expect(nextInLine(line, {}, {})?.runId).toBe('first');
  });

  it('prefers the workspace that has least for its units, even if another has waited longer', () => {
    const line = [waiting('busy', 'a', 1), waiting('idle', 'b', 9)];
    expect(nextInLine(line, { a: 2, b: 1 }, {})?.runId).toBe('idle');
    expect(nextInLine(line, { a: 2, b: 1 }, { a: 3 })?.runId).toBe('busy');
  });

  it('shares places by units when all workspaces always want more', () => {
    const units = { a: 3, b: 1 };
    const running: Record<string, number> = {};
    for (let place = 0; place < 40; place += 1) {
      const next = nextInLine([waiting('of-a', 'a', 1), waiting('of-b', 'b', 2)], running, units);
      const workspace = next?.workspace ?? '';
      running[workspace] = (running[workspace] ?? 0) + 1;
    }
    expect(running).toEqual({ a: 30, b: 10 });
  });
});

describe('places', () => {
  it('of all shards together are exactly the cap, and every shard has one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 20 }), (cap, wanted) => {
        const shards = usableShards(cap, wanted);
        const places = Array.from({ length: shards }, (_, shard) => slotsOfShard(cap, shards, shard));
        expect(Math.min(...places)).toBeGreaterThanOrEqual(1);
        expect(places.reduce((sum, each) => sum + each, 0)).toBe(cap);
      }),
      { seed: 11 },
    );
  });

  it('are always taken from the same shard by the same run', () => {
    const run = { runId: 'run_1', workspace: 'a' };
    expect(slotOf(run, 7)).toEqual(slotOf(run, 7));
    expect(slotOf(run, 1)).toEqual({ shard: 0, workspace: 'a' });
  });
});

it('a workflow may lower a cap of its tenant, never raise it', () => {
  expect(effectiveCaps({ maxConcurrency: 5 }, { maxConcurrency: 9, maxWritesPerRun: 2 })).toEqual({
    maxConcurrency: 5,
    maxRunsPerMinute: undefined,
    maxWritesPerRun: 2,
  });
  expect(effectiveCaps({ maxConcurrency: 5 }, { maxConcurrency: 3 }).maxConcurrency).toBe(3);
});

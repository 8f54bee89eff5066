import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  effectiveCaps,
  nextInLine,
  othersMayStart,
  slotsOfShard,
  takeSlot,
  usableShards,
  type Waiting,
} from '../../lambdas/run/settings/caps.ts';

const waiting = (runId: string, workspace: string, minute: number): Waiting => ({
  runId,
  workspace,
  createdAt: `2026-01-02T03:${String(minute).padStart(2, '0')}:00.000Z`,
});

describe('the queue of waiting runs', () => {
  it('is empty if no run waits', () => {
    expect(nextInLine([], {}, {})).toBeUndefined();
  });

  it('starts the run that has waited longest first', () => {
    const line = [waiting('second', 'a', 2), waiting('first', 'a', 1), waiting('third', 'a', 3)];
    expect(nextInLine(line, {}, {})?.runId).toBe('first');
  });

  it('prefers the workspace with the fewest running runs for its units, even if another run has waited longer', () => {
    const line = [waiting('busy', 'a', 1), waiting('idle', 'b', 9)];
    expect(nextInLine(line, { a: 2, b: 1 }, {})?.runId).toBe('idle');
    expect(nextInLine(line, { a: 2, b: 1 }, { a: 3 })?.runId).toBe('busy');
  });

  it('shares slots by units if all workspaces always want more', () => {
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
  it('of all shards add up to the cap, and every shard has one', () => {
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
    expect(takeSlot(run, 50, 7)).toEqual(takeSlot(run, 50, 7));
    expect(takeSlot(run, 5, 1)).toEqual({ kind: 'take_slot', slot: { shard: 0, workspace: 'a' }, max: 5 });
    expect(takeSlot(run, 1, 7, 'triage').slot).toEqual({ shard: 0, workspace: 'a', workflow: 'triage' });
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

it('a free slot goes to another run unless the tenant itself has none', () => {
  const slot = { shard: 0, workspace: 'a' };
  const key = { kind: 'take_key', key: 'k', runId: 'r' } as const;
  const ofTenant = { kind: 'take_slot', slot, max: 1 } as const;
  const ofWorkflow = { kind: 'take_slot', slot: { ...slot, workflow: 'triage' }, max: 1 } as const;
  const start = { kind: 'count_start', minute: '2026-01-02T03:04', max: 1 } as const;
  expect(othersMayStart([key], 1)).toBe(true);
  expect(othersMayStart([key, ofWorkflow, { ...start, workflow: 'triage' }], 1)).toBe(true);
  expect(othersMayStart([key, ofTenant], 1)).toBe(false);
  expect(othersMayStart([start], 4)).toBe(false);
  // A slot of another shard may have become free.
  expect(othersMayStart([ofTenant], 4)).toBe(true);
});

import { expect, it } from 'vitest';
import { type CommandRef, NO_OUTPUT, type OutputHead, type StoredChunk } from '../../../lambdas/agents/output.ts';
import type { OutputStore } from '../../../lambdas/agents/output-store.ts';

const AT = '2026-03-02T10:00:00.000Z';
const command = (runId: string, leaseVersion = 1, stepIndex = 3): CommandRef => ({
  tenant: 'output',
  runId,
  stepIndex,
  leaseVersion,
});
const chunk = (seq: number, data = `line ${seq}\n`): StoredChunk => ({ seq, stream: 'stdout', at: AT, data });
const head = (nextSeq: number, revision: number): OutputHead => ({ ...NO_OUTPUT, nextSeq, revision });

async function read(store: OutputStore, of: CommandRef, from: number, to: number): Promise<StoredChunk[]> {
  const found: StoredChunk[] = [];
  for await (const page of store.chunks(of, from, to)) found.push(...page);
  return found;
}

/** What every store of output does. */
export function outputStoreContract(open: () => OutputStore): void {
  it('chunks are stored in order, and read from any number on', async () => {
    const store = open();
    const of = command('run_order');
    expect(await store.head(of)).toBeUndefined();
    expect(await store.append(of, [chunk(0), chunk(1)], head(2, 1))).toBe(true);
    expect(await store.append(of, [chunk(2)], head(3, 2))).toBe(true);
    expect(await store.head(of)).toEqual(head(3, 2));
    expect(await read(store, of, 0, 3)).toEqual([chunk(0), chunk(1), chunk(2)]);
    expect(await read(store, of, 1, 2)).toEqual([chunk(1)]);
    expect(await read(store, of, 3, 3)).toEqual([]);
  });

  it('of two writers that read the same head one wins, and a stored chunk never changes', async () => {
    const store = open();
    const of = command('run_race');
    expect(await store.append(of, [chunk(0, 'first')], head(1, 1))).toBe(true);
    expect(await store.append(of, [chunk(0, 'second')], head(1, 1))).toBe(false);
    expect(await store.append(of, [chunk(1)], head(2, 3))).toBe(false);
    expect(await read(store, of, 0, 1)).toEqual([chunk(0, 'first')]);
    expect(await store.head(of)).toEqual(head(1, 1));
  });

  it('the output of other steps, leases and runs is separate', async () => {
    const store = open();
    for (const of of [command('run_a', 2), command('run_a', 10), command('run_a', 1, 4), command('run_b')]) {
      expect(await store.append(of, [chunk(0, JSON.stringify(of))], head(1, 1))).toBe(true);
    }
    expect(await read(store, command('run_a', 2), 0, 9)).toEqual([chunk(0, JSON.stringify(command('run_a', 2)))]);
    expect(await store.lastLease(command('run_a'))).toBe(10);
    expect(await store.lastLease(command('run_b'))).toBe(1);
    expect(await store.lastLease(command('run_c'))).toBeUndefined();
  });
}

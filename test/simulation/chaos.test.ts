import { describe, expect, it } from 'vitest';
import { trustedKey } from '../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../lambdas/evidence/verify/verify-bundle.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { ALL_FAULTS, CRASH_POINT_FAULTS } from './faults.ts';
import { scenarioOf } from './scenario.ts';
import type { ShapeName } from './shapes.ts';
import { SELDOM, SITUATIONS } from './situations.ts';
import { addTo, type CrashPointFault, doJob, emptyTally, type Job, pointJobs, seedJobs } from './trials.ts';
import { World } from './world.ts';

/** A small part of what `npm run chaos` does; the whole takes a minute or two. */
const SEEDS = 100;
/** Each with those faults that have most to say about it. */
const PARTS: [ShapeName, readonly CrashPointFault[]][] = [
  ['side-by-side', CRASH_POINT_FAULTS],
  ['third-write-fails', ['crash_after', 'lost_reply']],
  ['edited-first', ['crash_after']],
  ['undone-after-its-end', ['crash_after']],
];

async function doAll(jobs: Job[]) {
  const sum = emptyTally();
  for (const job of jobs) {
    addTo(sum, await doJob(job));
    if (sum.found) break;
  }
  return sum;
}

const described = ({ invariant, what, again, lastEvents }: NonNullable<ReturnType<typeof emptyTally>['found']>) =>
  [invariant, what, `npm run chaos -- ${again}`, ...lastEvents].join('\n');

describe('chaos', () => {
  it(`breaks no invariant in ${SEEDS} worlds, and meets every fault and situation there is`, async () => {
    const { seeds, found, injected, situations } = await doAll(seedJobs(1, SEEDS));
    expect(found && described(found)).toBeUndefined();
    expect(seeds).toBe(SEEDS);
    expect(ALL_FAULTS.filter((fault) => !injected[fault])).toEqual([]);
    expect(SITUATIONS.filter((situation) => !situations[situation] && !SELDOM.includes(situation))).toEqual([]);
  });

  it.each(PARTS)('breaks no invariant at any crash point of a %s run', async (shape, faults) => {
    const { points, found, injected } = await doAll(pointJobs([shape], faults));
    expect(found && described(found)).toBeUndefined();
    expect(points).toBeGreaterThan(100);
    expect(points % faults.length).toBe(0);
    // Every point was met: none of the calls is missing in the run with the fault.
    expect(Object.values(injected).reduce((sum, times) => sum + times, 0)).toBe(points);
  });

  it('ends runs in every terminal status, and leaves a bundle of each that the verifier finds valid', async () => {
    const statuses = new Set<string>();
    const keys = [trustedKey(new SeededSigner().publicKey)];
    for (let seed = 1_001; seed <= 1_040; seed += 1) {
      const world = new World(scenarioOf(seed));
      for (const status of (await world.run()).statuses) statuses.add(status);
      for (const { tenant, runId } of world.store.inside.runs()) {
        const { documentKey, envelopeKey } = world.store.inside.evidence(tenant, runId) ?? {};
        const [document, envelope] = [documentKey, envelopeKey].map((key) => world.evidence.peek(key ?? ''));
        const addenda = world.store.inside.addenda(tenant, runId).map((each) => ({
          name: each.documentKey,
          document: world.evidence.peek(each.documentKey) ?? Buffer.from(''),
          envelope: world.evidence.peek(each.envelopeKey),
        }));
        const verdict = document && envelope && verifyBundle({ document, envelope, keys, addenda });
        expect(verdict, `seed ${seed}, ${runId}`).toMatchObject({ verdict: 'valid' });
      }
    }
    expect([...statuses].sort()).toEqual(['canceled', 'failed_terminal', 'needs_human', 'succeeded', 'timed_out']);
  });

  it('has the same events for the same seed, and others for another seed', async () => {
    const story = async (seed: number) => {
      const lines: string[] = [];
      await new World(scenarioOf(seed), (line) => lines.push(line)).run();
      return lines.join('\n');
    };
    for (const seed of [3, 14, 159, 2653]) expect(await story(seed)).toBe(await story(seed));
    expect(await story(3)).not.toBe(await story(14));
  });
});

import { describe, expect, it } from 'vitest';
import { trustedKey } from '../../lambdas/evidence/verify/trusted-keys.ts';
import { verifyBundle } from '../../lambdas/evidence/verify/verify-bundle.ts';
import { SeededSigner } from '../fakes/seeded-signer.ts';
import { ALL_FAULTS, CRASH_POINT_FAULTS } from './faults.ts';
import { addTo, type CrashPointFault, emptyTally, type Job, pointJobs, runJob, seedJobs } from './jobs.ts';
import { scenarioOf } from './scenario.ts';
import { Simulation } from './simulation.ts';
import { RARE, SITUATIONS } from './situations.ts';
import type { ShapeName } from './workflow-shapes.ts';

/** A small part of what `npm run chaos` does. */
const SEEDS = 100;
/** Each with the faults that show the most. */
const PARTS: [ShapeName, readonly CrashPointFault[]][] = [
  ['parallel-steps', CRASH_POINT_FAULTS],
  ['third-write-fails', ['crash_after', 'lost_reply']],
  ['edited-first', ['crash_after']],
  ['rolled-back-after-end', ['crash_after']],
];

async function runAll(jobs: Job[]) {
  const sum = emptyTally();
  for (const job of jobs) {
    addTo(sum, await runJob(job));
    if (sum.found) break;
  }
  return sum;
}

const described = ({ invariant, what, again, lastEvents }: NonNullable<ReturnType<typeof emptyTally>['found']>) =>
  [invariant, what, `npm run chaos -- ${again}`, ...lastEvents].join('\n');

describe('chaos', () => {
  it(`violates no invariant in ${SEEDS} simulations, in which every fault and situation occurs`, async () => {
    const { seeds, found, injected, situations } = await runAll(seedJobs(1, SEEDS));
    expect(found && described(found)).toBeUndefined();
    expect(seeds).toBe(SEEDS);
    expect(ALL_FAULTS.filter((fault) => !injected[fault])).toEqual([]);
    expect(SITUATIONS.filter((situation) => !situations[situation] && !RARE.includes(situation))).toEqual([]);
  });

  it.each(PARTS)('violates no invariant at any crash point of a %s run', async (shape, faults) => {
    const { points, found, injected } = await runAll(pointJobs([shape], faults));
    expect(found && described(found)).toBeUndefined();
    expect(points).toBeGreaterThan(100);
    expect(points % faults.length).toBe(0);
    // Every fault was injected: no call is missing in the run with the fault.
    expect(Object.values(injected).reduce((sum, times) => sum + times, 0)).toBe(points);
  });

  it('ends runs in every terminal status, and the verifier accepts the bundle of each', async () => {
    const statuses = new Set<string>();
    const keys = [trustedKey(new SeededSigner().publicKey)];
    for (let seed = 1_001; seed <= 1_040; seed += 1) {
      const simulation = new Simulation(scenarioOf(seed));
      for (const status of (await simulation.run()).statuses) statuses.add(status);
      for (const { tenant, runId } of simulation.store.inside.runs()) {
        const { documentKey, envelopeKey } = simulation.store.inside.evidence(tenant, runId) ?? {};
        const [document, envelope] = [documentKey, envelopeKey].map((key) => simulation.evidence.peek(key ?? ''));
        const addenda = simulation.store.inside.addenda(tenant, runId).map((each) => ({
          name: each.documentKey,
          document: simulation.evidence.peek(each.documentKey) ?? Buffer.from(''),
          envelope: simulation.evidence.peek(each.envelopeKey),
        }));
        const verdict = document && envelope && verifyBundle({ document, envelope, keys, addenda });
        expect(verdict, `seed ${seed}, ${runId}`).toMatchObject({ verdict: 'valid' });
      }
    }
    expect([...statuses].sort()).toEqual(['canceled', 'failed_terminal', 'needs_human', 'succeeded', 'timed_out']);
  });

  it('has the same events for the same seed, and others for another seed', async () => {
    const eventLog = async (seed: number) => {
      const lines: string[] = [];
      await new Simulation(scenarioOf(seed), (line) => lines.push(line)).run();
      return lines.join('\n');
    };
    for (const seed of [3, 14, 159, 2653]) expect(await eventLog(seed)).toBe(await eventLog(seed));
    expect(await eventLog(3)).not.toBe(await eventLog(14));
  });
});

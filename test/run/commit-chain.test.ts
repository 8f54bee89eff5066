import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Commit, genesisHash } from '../../lambdas/run/commit.ts';
import type { CommitEvent } from '../../lambdas/run/events/events.ts';
import { later } from '../../lambdas/run/lease.ts';
import type { Run } from '../../lambdas/run/run.ts';
import { RunDraft } from '../../lambdas/run/run-draft.ts';
import type { Steps } from '../../lambdas/run/step.ts';
import { assertChain } from '../fakes/assert-chain.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import { accepted } from '../fakes/story.ts';

const SEED = 20_260_102;
const NONE: Steps = new Map();

function chainOf(length: number, options: { runId?: string; tenant?: string } = {}): { run: Run; commits: Commit[] } {
  const { run, commit } = accepted(options);
  const commits = [commit];
  let head: Run = run;
  while (commits.length < length) {
    const draft = new RunDraft({ run: head, steps: NONE }, later(STORY_BEGINS_AT, commits.length));
    const index = commits.length;
    const change = draft.record({ type: 'step.canceled', step: `step_${index}`, index }).seal();
    commits.push(change.commit);
    head = change.run;
  }
  return { run: head, commits };
}

const broken = (run: Run, commits: Commit[]) => {
  try {
    assertChain(run, commits);
    return undefined;
  } catch (error) {
    return error as { code: string; message: string };
  }
};

describe('the chain of commits', () => {
  it('is valid from the identity of the run to its head', () => {
    const { run, commits } = chainOf(5);
    expect(broken(run, commits)).toBeUndefined();
    expect(commits[0]?.prevHash).toBe(genesisHash('acme', 'run_00000001'));
    expect(run).toMatchObject({ seq: 5, headHash: commits[4]?.hash });
  });

  it('names the commit that was edited', () => {
    const { run, commits } = chainOf(5);
    const edited = structuredClone(commits);
    Object.assign(edited[2]?.events[0] ?? {}, { step: 'another' });
    expect(broken(run, edited)).toMatchObject({ code: 'CHAIN_BROKEN', message: expect.stringContaining('commit 3') });
  });

  it('is broken by an edit with a recomputed hash', () => {
    const { run, commits } = chainOf(3);
    const other = chainOf(3, { tenant: 'globex' });
    expect(broken(run, [...other.commits.slice(0, 1), ...commits.slice(1)])).toMatchObject({ code: 'CHAIN_BROKEN' });
  });

  it.each([
    ['the first is dropped', (commits: Commit[]) => commits.slice(1)],
    ['one in the middle is dropped', (commits: Commit[]) => commits.toSpliced(2, 1)],
    ['the tail is cut off', (commits: Commit[]) => commits.slice(0, -1)],
    ['all are gone', () => []],
    [
      'two are swapped',
      (commits: Commit[]) => [...commits.slice(0, 1), ...commits.slice(1, 3).reverse(), ...commits.slice(3)],
    ],
    ['one is there twice', (commits: Commit[]) => [...commits, ...commits.slice(-1)]],
    [
      'commits of another run are spliced in',
      (commits: Commit[]) => [...commits.slice(0, 4), ...chainOf(5, { runId: 'run_00000002' }).commits.slice(4)],
    ],
    ['the whole chain is another run’s', () => chainOf(5, { runId: 'run_00000002' }).commits],
  ])('is broken when %s', (_what, tampered) => {
    const { run, commits } = chainOf(5);
    expect(broken(run, tampered(commits))).toMatchObject({ code: 'CHAIN_BROKEN' });
  });

  it('is broken by any change of any field of any commit', () => {
    const { run, commits } = chainOf(6);
    const anywhere = fc.record({ at: fc.nat(5), field: fc.constantFrom('seq', 'prevHash', 'at', 'events', 'hash') });
    fc.assert(
      fc.property(anywhere, fc.anything(), ({ at, field }, value) => {
        const before = commits[at]?.[field as keyof Commit];
        fc.pre(JSON.stringify(value) !== JSON.stringify(before) && isJson(value));
        const edited = commits.map((commit, index) =>
          index === at ? ({ ...commit, [field]: value } as Commit) : commit,
        );
        expect(broken(run, edited)).toBeDefined();
      }),
      { seed: SEED, numRuns: 500 },
    );
  });

  it('is broken by any reordering or loss', () => {
    const { run, commits } = chainOf(6);
    fc.assert(
      fc.property(fc.shuffledSubarray(commits), (subset) => {
        const whole = subset.length === 6 && subset.every((commit, index) => commit === commits[index]);
        expect(broken(run, subset) === undefined).toBe(whole);
      }),
      { seed: SEED, numRuns: 500 },
    );
  });
});

describe('a draft', () => {
  it('becomes one commit that follows the head it was made from', () => {
    const { run } = accepted();
    const events: CommitEvent[] = [{ type: 'run.enriched', enrichmentHash: 'x' }];
    const at = later(STORY_BEGINS_AT, 1_000);
    const change = new RunDraft({ run, steps: NONE }, at)
      .record(...events)
      .note({ dueAt: at })
      .seal();
    expect(change).toMatchObject({
      runBefore: run,
      commit: { seq: 2, prevHash: run.headHash, at, events },
      run: { seq: 2, headHash: change.commit.hash, updatedAt: at, dueAt: at },
    });
    expect(run.seq).toBe(1);
  });

  it('refuses a transition that the table does not allow', () => {
    const draft = new RunDraft({ run: accepted().run, steps: NONE }, STORY_BEGINS_AT);
    expect(() => draft.move('succeeded', { initiator: 'system', actor: 'worker' })).toThrow(/cannot go from queued/);
  });
});

/** Values that JSON can represent: others cannot be stored. */
function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(JSON.parse(JSON.stringify(value))) === JSON.stringify(value);
  } catch {
    return false;
  }
}

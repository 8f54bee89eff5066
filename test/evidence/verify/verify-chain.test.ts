import { describe, expect, it } from 'vitest';
import type { EvidenceCommit } from '../../../lambdas/evidence/bundle/commit-entry.ts';
import { type Case, changed, other, problemOf, rehash, swap } from './tampering.ts';

describe('the verifier of a chain names the commit that', () => {
  it.each<Case>([
    [
      'was edited',
      ({ commits }) => Object.assign(commits[3]?.events[0] ?? {}, { person: 'mallory' }),
      { entry: 'commit 4', problem: /was edited/ },
    ],
    [
      'was edited, its hash made to fit',
      ({ commits }) => rehash(commits[3], { at: '2026-01-02T00:00:00.000Z' }),
      { entry: 'commit 4', problem: /was replaced: commit 5 follows another/ },
    ],
    [
      'was edited with all after it made to fit',
      ({ commits, head }) => {
        for (const [index, commit] of commits.entries()) {
          if (index >= 3) rehash(commit, { prevHash: commits[index - 1]?.hash, at: '2026-01-02T00:00:00.000Z' });
        }
        head.hash = commits.at(-1)?.hash ?? '';
      },
      { entry: 'commit 10', problem: /another commit was signed as the head/ },
    ],
    ['was dropped', ({ commits }) => commits.splice(4, 1), { entry: 'commit 5', problem: /is missing/ }],
    ['was dropped first of all', ({ commits }) => commits.splice(0, 1), { entry: 'commit 1', problem: /is missing/ }],
    [
      'was doubled',
      ({ commits }) => commits.splice(4, 0, ...commits.slice(4, 5)),
      { entry: 'commit 5', problem: /duplicated/ },
    ],
    ['was moved', ({ commits }) => swap(commits, 4, 6), { entry: 'commit 7', problem: /position of commit 5/ }],
    [
      'is the first of those cut off',
      ({ commits }) => commits.splice(7),
      { entry: 'commit 8', problem: /is missing, with all up to commit 10/ },
    ],
    [
      'is cut off with a head that fits',
      (document) => {
        document.commits.splice(9);
        document.head = { hash: document.commits.at(-1)?.hash ?? '', count: 9 };
      },
      { entry: 'commit 10', problem: /is missing/ },
    ],
    [
      'was added',
      ({ commits }) => {
        commits.push({ ...(commits[9] as EvidenceCommit), seq: 11, prevHash: commits[9]?.hash ?? '' });
        rehash(commits[10], {});
      },
      { entry: 'commit 11', problem: /was added/ },
    ],
    [
      'comes from another run',
      ({ commits }) => commits.splice(6, 4, ...other.commits.slice(6)),
      { entry: 'commit 7', problem: /does not follow commit 6/ },
    ],
    [
      'begins another run',
      (document) => {
        document.commits = other.commits;
      },
      { entry: 'commit 1', problem: /of another run/ },
    ],
  ])('%s', (_what, change, expected) => {
    expect(problemOf(changed(change))).toEqual({
      entry: expected.entry,
      problem: expect.stringMatching(expected.problem),
    });
  });
});

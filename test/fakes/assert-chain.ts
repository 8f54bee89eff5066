import { type Commit, commitHash, genesisHash } from '../../lambdas/run/commit.ts';
import { CountersignError } from '../../lambdas/run/errors.ts';
import type { Run } from '../../lambdas/run/run.ts';

/** Checks that the commits are complete, in order and unedited, from the first to the head of the run. */
export function assertChain(run: Pick<Run, 'tenant' | 'runId' | 'seq' | 'headHash'>, commits: readonly Commit[]): void {
  let prevHash = genesisHash(run.tenant, run.runId);
  for (const [index, commit] of commits.entries()) {
    const seq = index + 1;
    if (commit.seq !== seq) throw broken(run, `commit ${seq} is missing or out of order (found ${commit.seq})`);
    if (commit.prevHash !== prevHash) throw broken(run, `commit ${seq} does not follow the one before it`);
    if (commitHash(commit) !== commit.hash) throw broken(run, `commit ${seq} was edited`);
    prevHash = commit.hash;
  }
  if (commits.length !== run.seq || prevHash !== run.headHash) {
    throw broken(run, `the chain ends at commit ${commits.length}, the run's head is ${run.seq}`);
  }
}

function broken(run: Pick<Run, 'runId'>, what: string): CountersignError {
  return new CountersignError('CHAIN_BROKEN', `run ${run.runId}: ${what}`);
}

import type { Approval } from '../../lambdas/run/approval.ts';
import type { Commit } from '../../lambdas/run/commit.ts';
import type { LoadedRun, RunReads, RunRow } from '../../lambdas/run/run-store.ts';

/** A run with all its commits, in order, and all its approvals. */
export interface WholeRun extends LoadedRun {
  commits: Commit[];
  approvals: Approval[];
}

/** All rows of a run at once, for tests whose runs are small. */
export async function wholeRun(
  runs: Pick<RunReads, 'everyRow'>,
  tenant: string,
  runId: string,
): Promise<WholeRun | undefined> {
  const rows: RunRow[] = [];
  for await (const row of runs.everyRow(tenant, runId)) rows.push(row);
  const [run] = rows.flatMap((row) => (row.kind === 'run' ? [row.run] : []));
  const [trigger] = rows.flatMap((row) => (row.kind === 'trigger' ? [row.trigger] : []));
  if (!run || !trigger) return undefined;
  return {
    run,
    trigger,
    steps: rows.flatMap((row) => (row.kind === 'step' ? [row.step] : [])),
    commits: rows.flatMap((row) => (row.kind === 'commit' ? [row.commit] : [])),
    approvals: rows.flatMap((row) => (row.kind === 'approval' ? [row.approval] : [])),
  };
}

/** The rows that a store has of such a run. */
export function rowsOf({ run, trigger, steps, commits, approvals }: WholeRun): RunRow[] {
  return [
    ...approvals.map((approval) => ({ kind: 'approval' as const, approval })),
    ...commits.map((commit) => ({ kind: 'commit' as const, commit })),
    { kind: 'run', run },
    ...steps.map((step) => ({ kind: 'step' as const, step })),
    { kind: 'trigger', trigger },
  ];
}

import type { Commit } from '../run/commit.ts';
import type { Receipt } from '../run/receipt.ts';
import { isTerminal, type Run } from '../run/run.ts';
import type { EvidenceRecord } from '../run/run-store.ts';
import type { Step } from '../run/step.ts';
import type { Workflow } from '../workflow/workflow.ts';

/** Runs as the API shows them: no keys of ours, no due times, no leases of no concern to a reader. */
export function runSummary(run: Run) {
  const { runId, automation, workflow, status, subject, trigger, createdAt, updatedAt, startedAt } = run;
  return {
    runId,
    status,
    title: run.enrichment?.title ?? null,
    subject: subject ?? null,
    automation,
    workflow,
    trigger,
    createdAt,
    updatedAt,
    startedAt: startedAt ?? null,
    ...(isTerminal(run) && { completedAt: run.completedAt, durationMs: run.durationMs, error: run.error ?? null }),
  };
}

export interface RunDetail {
  run: Run;
  steps: Step[];
  workflow: Workflow | undefined;
  commits: Commit[];
  receipts: Receipt[];
  evidence: EvidenceRecord | undefined;
}

export function runDetail({ run, steps, workflow, commits, receipts, evidence }: RunDetail) {
  const last = commits.at(-1)?.seq ?? 0;
  return {
    ...runSummary(run),
    enrichment: run.enrichment ?? null,
    deadlineAt: run.deadlineAt,
    head: { seq: run.seq, hash: run.headHash },
    steps: (workflow?.steps ?? []).map(({ id, tool }, index) => stepView(id, tool, index, steps)),
    commits,
    /** Where `GET …/events?since=` goes on, if there are more commits than fit here. */
    ...(last < run.seq && { moreCommitsSince: last }),
    receipts,
    evidence: evidence ?? null,
  };
}

/** A step no commit has reached yet has no row: it is pending. */
function stepView(id: string, tool: string, index: number, rows: Step[]) {
  const step = rows.find((row) => row.index === index);
  if (!step) return { id, index, tool, status: 'pending' as const };
  const { schemaVersion: _version, ...view } = step;
  return view;
}

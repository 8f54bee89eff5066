import type { Approval } from '../approval/approval.ts';
import type { Commit } from '../run/commit.ts';
import type { Receipt } from '../run/receipt.ts';
import { isTerminal, type Run } from '../run/run.ts';
import type { EvidenceRecord } from '../run/run-store.ts';
import type { Step } from '../run/step.ts';
import type { Workflow } from '../workflow/workflow.ts';

/** Runs as the API shows them: what a reader needs, in an order a reader expects, none of our storage. */
export function runSummary(run: Run) {
  return {
    runId: run.runId,
    status: run.status,
    title: run.enrichment?.title ?? null,
    subject: run.subject ?? null,
    automation: run.automation,
    workflow: { name: run.workflow.name, version: run.workflow.version },
    trigger: { source: run.trigger.source, event: run.trigger.event, key: run.trigger.key },
    createdAt: run.createdAt,
    startedAt: run.startedAt ?? null,
    updatedAt: run.updatedAt,
    completedAt: isTerminal(run) ? run.completedAt : null,
    durationMs: isTerminal(run) ? run.durationMs : null,
    approvalOverdueSince: (!isTerminal(run) && run.approvalOverdueSince) || null,
    error: (isTerminal(run) && run.error) || null,
  };
}

export interface RunDetail {
  run: Run;
  steps: Step[];
  workflow: Workflow | undefined;
  commits: Commit[];
  receipts: Receipt[];
  approvals: Approval[];
  evidence: EvidenceRecord | undefined;
}

export function runDetail({ run, steps, workflow, commits, receipts, approvals, evidence }: RunDetail) {
  const last = commits.at(-1)?.seq ?? 0;
  return {
    ...runSummary(run),
    enrichment: run.enrichment ?? null,
    deadlineAt: run.deadlineAt,
    head: { seq: run.seq, hash: run.headHash },
    steps: [
      ...(workflow?.steps ?? []).map(({ id, tool }, index) => stepView(id, tool, index, steps)),
      // What takes others back stands behind them, newest first as it is done.
      ...steps
        .filter(({ undoes }) => undoes !== undefined)
        .toReversed()
        .map(shownStep),
    ],
    approvals: approvals.map(approvalView),
    receipts: receipts.map(receiptView),
    /** What somebody asked for that has not come about yet. */
    stopRequest: run.stopRequest ?? null,
    rollback: run.rollback ?? null,
    compensation: run.compensation ?? [],
    commits: commits.map(commitView),
    /** Where `GET …/events?since=` goes on, if there are more commits than fit here. */
    ...(last < run.seq && { moreCommitsSince: last }),
    evidence: evidence ?? null,
  };
}

/** A step no commit has reached yet has no row: it is pending. */
function stepView(id: string, tool: string, index: number, rows: Step[]) {
  const step = rows.find((row) => row.index === index);
  return step ? shownStep(step) : { id, index, tool, status: 'pending' as const };
}

function shownStep({ schemaVersion: _version, id, index, tool, status, attempt, ...rest }: Step) {
  return { id, index, tool, status, attempt, ...rest };
}

export function approvalView(approval: Approval) {
  const { schemaVersion: _version, tenant: _tenant, revision: _revision, ...view } = approval;
  return view;
}

function receiptView(receipt: Receipt) {
  const { schemaVersion: _version, tenant: _tenant, stepId, tool, target, outcome, effect, fields, ...rest } = receipt;
  return { stepId, tool, target, outcome, effect, fields, ...rest };
}

export function commitView({ seq, at, events, prevHash, hash }: Commit) {
  return { seq, at, events: events.map(({ type, ...rest }) => ({ type, ...rest })), prevHash, hash };
}

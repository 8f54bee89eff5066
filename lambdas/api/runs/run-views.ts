import type { Approval } from '../../run/approval.ts';
import type { Commit } from '../../run/commit.ts';
import type { Receipt } from '../../run/receipt.ts';
import { isTerminal, type Run } from '../../run/run.ts';
import type { EvidenceRecord } from '../../run/run-store.ts';
import type { Step } from '../../run/step.ts';
import type { StepPage } from './run-steps.ts';

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
    currentStep: (!isTerminal(run) && run.currentStep) || null,
    resumeCount: run.resumeCount ?? 0,
    cancellation: run.cancellation ?? null,
    approvalOverdueSince: (!isTerminal(run) && run.approvalOverdueSince) || null,
    error: (isTerminal(run) && run.error) || null,
  };
}

export interface RunDetail {
  run: Run;
  rows: readonly Step[];
  page: StepPage & { nextStepsCursor: string | null };
  commits: Commit[];
  evidence: EvidenceRecord | undefined;
}

export function runDetail({ run, rows, page, commits, evidence }: RunDetail) {
  const last = commits.at(-1)?.seq ?? 0;
  return {
    ...runSummary(run),
    enrichment: run.enrichment ?? null,
    deadlineAt: run.deadlineAt,
    /** What the workflow's last step gave, once the run has succeeded. */
    result: resultOf(run, rows),
    head: { seq: run.seq, hash: run.headHash },
    steps: page.steps,
    approvals: page.approvals,
    receipts: page.receipts,
    /** Where `GET …/steps?cursor=` goes on, if there are more steps than fit here. */
    nextStepsCursor: page.nextStepsCursor,
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

export type ShownStep =
  | WithoutEach<Step, 'schemaVersion'>
  | (Pick<Step, 'id' | 'index' | 'tool'> & { status: 'pending' });

function resultOf({ status }: Run, rows: readonly Step[]): unknown {
  const last = status === 'succeeded' ? rows.at(-1) : undefined;
  return last?.status === 'succeeded' ? last.output : null;
}

/** `Omit` for each member of a union, which therefore stays one that its status tells apart. */
export type WithoutEach<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

export function shownStep({ schemaVersion: _version, id, index, tool, status, attempt, ...rest }: Step): ShownStep {
  return { id, index, tool, status, attempt, ...rest } as ShownStep;
}

export function approvalView(approval: Approval) {
  const { schemaVersion: _version, tenant: _tenant, revision: _revision, ...view } = approval;
  return view;
}

export function receiptView(receipt: Receipt) {
  const { schemaVersion: _version, tenant: _tenant, stepId, tool, target, outcome, effect, fields, ...rest } = receipt;
  return { stepId, tool, target, outcome, effect, fields, ...rest };
}

export function commitView({ seq, at, events, prevHash, hash }: Commit) {
  return { seq, at, events: events.map(({ type, ...rest }) => ({ type, ...rest })), prevHash, hash };
}

import type { Commit } from '../../run/commit.ts';
import { isTerminal, type Run } from '../../run/run.ts';
import type { EvidenceRecord, Rerun } from '../../run/run-store.ts';
import type { Step } from '../../run/step.ts';
import { traceIdOf } from '../../telemetry/trace-context.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { RunDetail, RunSummary } from '../contract/runs/runs.ts';
import { runActions } from './run-actions.ts';
import type { StepPage } from './run-steps.ts';

export function runSummary(run: Run): RunSummary {
  return {
    runId: run.runId,
    status: run.status,
    title: run.enrichment?.title ?? null,
    subject: run.subject ?? null,
    automation: run.automation,
    workflow: { name: run.workflow.name, version: run.workflow.version },
    trigger: { source: run.trigger.source, event: run.trigger.event, key: run.trigger.key },
    request: run.request ?? null,
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
    assignee: run.assignee ?? null,
    resolution: run.resolution ?? null,
    rollbackOf: run.rollbackOf?.runId ?? null,
    rolledBackBy: run.rolledBackBy ?? null,
  };
}

export interface LoadedRun {
  run: Run;
  rows: readonly Step[];
  page: StepPage & { nextStepsCursor: string | null };
  commits: Commit[];
  evidence: EvidenceRecord | undefined;
  reruns: Rerun[];
  caller: Caller;
  /** The setting `traceUrl` of the stage. */
  traceUrl: string | undefined;
}

export function runDetail({ run, rows, page, commits, evidence, reruns, caller, traceUrl }: LoadedRun): RunDetail {
  const last = commits.at(-1)?.seq ?? 0;
  return {
    ...runSummary(run),
    actions: runActions({ run, rows, isSealed: evidence !== undefined }, caller),
    enrichment: run.enrichment ?? null,
    inputs: run.inputs ?? null,
    deadlineAt: run.deadlineAt,
    trace: traceOf(run, traceUrl),
    flags: run.flags ?? null,
    result: resultOf(run, rows),
    head: { seq: run.seq, hash: run.headHash },
    steps: page.steps,
    approvals: page.approvals,
    receipts: page.receipts,
    nextStepsCursor: page.nextStepsCursor,
    stopRequest: run.stopRequest ?? null,
    rollback: run.rollback ?? null,
    compensation: run.compensation ?? [],
    reruns,
    commits,
    ...(last < run.seq && { moreCommitsSince: last }),
    evidence: evidence ?? null,
  };
}

function traceOf(run: Run, traceUrl: string | undefined): RunDetail['trace'] {
  const id = traceIdOf(run);
  // X-Ray writes the first digits apart, because its own ids begin with a time.
  const xrayId = `1-${id.slice(0, XRAY_TIME_DIGITS)}-${id.slice(XRAY_TIME_DIGITS)}`;
  return { id, url: traceUrl?.replace('{traceId}', id).replace('{xrayTraceId}', xrayId) ?? null };
}
const XRAY_TIME_DIGITS = 8;

function resultOf({ status, rollbackOf }: Run, rows: readonly Step[]): unknown {
  const last = status === 'succeeded' && !rollbackOf ? rows.at(-1) : undefined;
  return last?.status === 'succeeded' ? last.output : null;
}

import { commitHash, genesisHash } from '../../../lambdas/run/commit.ts';
import type { Initiator } from '../../../lambdas/run/events/run-events.ts';
import type { Run, TerminalRun } from '../../../lambdas/run/run.ts';
import type { StatusChanged } from '../../../lambdas/run/statuses/transitions.ts';
import type { Step } from '../../../lambdas/run/step.ts';
import { needsOf } from '../../../lambdas/workflow/step-order.ts';
import type { Workflow } from '../../../lambdas/workflow/workflow.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import { MAY_FOLLOW, MAY_FOLLOW_IN_ROLLBACK_RUN, TERMINAL } from './lifecycle-table.ts';
import type { Report } from './report.ts';

/** How often a run is resumed that has not changed for 30 minutes. */
const ORPHAN_RESUMES = 3;

/** Final statuses of a step. An operator may retry a failed step. */
const DONE: readonly Step['status'][] = ['succeeded', 'canceled', 'rolled_back'];

/** A run and its steps at one moment. The store never changes rows in place, so no copy is needed. */
export interface Snapshot {
  run: Run | undefined;
  steps: readonly Step[];
}

export function snapshot({ inside }: MemoryRunStore, tenant: string, runId: string): Snapshot {
  return { run: inside.run(tenant, runId), steps: inside.steps(tenant, runId) };
}

/** What a commit may change in a run, by the rows before and after it. */
export function checkHistory(
  report: Report,
  store: MemoryRunStore,
  workflow: Workflow | undefined,
  before: Snapshot,
  after: Snapshot,
): void {
  const { run } = after;
  if (!run || run === before.run) {
    if (!sameSteps(before, after)) report('steps change only in a commit of their run', `${before.run?.runId}`);
    return;
  }
  if (before.run && TERMINAL.has(before.run.status)) checkEnded(report, before.run, run, sameSteps(before, after));
  checkChain(report, store, before.run, run);
  checkStatuses(report, store, before.run, run);
  checkSteps(report, workflow, before, after);
  checkFacts(report, before.run, run, after.steps);
  checkStop(report, store, before.run, run);
}

/** After its end, a run can be assigned and released, resolved once and rolled back once. Nothing else changes. */
function checkEnded(report: Report, before: Run, run: Run, sameSteps: boolean): void {
  if (!sameSteps || JSON.stringify(unchangeable(before)) !== JSON.stringify(unchangeable(run))) {
    report('an ended run does not change', `${run.runId} was ${before.status}, is ${run.status}`);
  }
  if (before.resolution && JSON.stringify(before.resolution) !== JSON.stringify(run.resolution)) {
    report('a resolution is final', run.runId);
  }
  if (before.rolledBackBy !== undefined && before.rolledBackBy !== run.rolledBackBy) {
    report('an ended run is rolled back at most once', `${run.runId}, by ${before.rolledBackBy}, ${run.rolledBackBy}`);
  }
}

function unchangeable(run: Run): object {
  const {
    seq: _seq,
    headHash: _headHash,
    updatedAt: _at,
    assignee: _a,
    resolution: _r,
    rolledBackBy: _b,
    // A commit and the seal at the same time: then it is due once more.
    sealDueAt: _due,
    ...rest
  } = run as TerminalRun;
  return rest;
}

/** After a stop request, open requests may finish, but nothing starts until the run is resumed. */
function checkStop(report: Report, { inside }: MemoryRunStore, before: Run | undefined, run: Run): void {
  if (before?.stopRequest?.kind === 'rollback' && run.status === 'failed_terminal' && !run.rollback) {
    report('a rollback that an operator requested takes place', run.runId);
  }
  const isResumed = run.stopRequest === undefined && !TERMINAL.has(run.status) && run.status !== 'paused';
  if (!before?.stopRequest || isResumed) return;
  const events = inside.commit(run.tenant, run.runId, run.seq)?.events ?? [];
  if (events.some(({ type }) => type === 'step.claimed' || type === 'step.waiting' || type === 'approval.requested')) {
    report('a run with a stop request starts nothing', run.runId);
  }
}

const sameSteps = (before: Snapshot, after: Snapshot) =>
  before.steps.length === after.steps.length && before.steps.every((step, index) => step === after.steps[index]);

/** Each commit has the hash of the one before it. The whole chain is valid if every link is. */
function checkChain(report: Report, { inside }: MemoryRunStore, before: Run | undefined, run: Run): void {
  const { tenant, runId, seq, headHash } = run;
  if (seq !== (before?.seq ?? 0) + 1) report('seq grows by one', `${runId} went from ${before?.seq} to ${seq}`);
  const commit = inside.commit(tenant, runId, seq);
  const previous = before?.headHash ?? genesisHash(tenant, runId);
  const linked = commit?.hash === headHash && commit.prevHash === previous && commit.seq === seq;
  if (!commit || !linked || commitHash(commit) !== commit.hash) {
    report('every commit follows the one before it', `${runId} at ${seq}`);
  }
  if (before && run.updatedAt < before.updatedAt) report('times never decrease in a chain', `${runId} at ${seq}`);
  if (inside.commit(tenant, runId, seq + 1)) report('a chain has no fork', `${runId} has a commit after its head`);
}

function checkStatuses(report: Report, { inside }: MemoryRunStore, before: Run | undefined, run: Run): void {
  let status = before?.status ?? 'queued';
  const { events = [] } = inside.commit(run.tenant, run.runId, run.seq) ?? {};
  const approved = events.some((event) => event.type === 'approval.decided' && event.status === 'approved');
  for (const event of events) {
    if (event.type !== 'run.status_changed') continue;
    const mayFollow = run.rollbackOf ? MAY_FOLLOW_IN_ROLLBACK_RUN : MAY_FOLLOW;
    if (event.from !== status || !mayFollow[event.from]?.includes(event.to)) {
      report(
        'a status changes only as the lifecycle table allows',
        `${run.runId}: ${status}, then ${event.from} to ${event.to}`,
      );
    }
    const isRequested = run.rollbackOf !== undefined && run.seq === 1 && event.initiator === 'user';
    if (!isRequested && !hasRightInitiator(event, approved, run)) {
      report('a change of status names who caused it', `${run.runId} to ${event.to}: ${JSON.stringify(event)}`);
    }
    const resumes = run.orphanResumes ?? 0;
    if (event.error?.code === 'RUN_ORPHANED' && resumes < ORPHAN_RESUMES) {
      report('an orphaned run is resumed before it is failed', `${run.runId}, resumed ${resumes} times`);
    }
    status = event.to;
  }
  if (status !== run.status)
    report('the events contain every change of status', `${run.runId} is ${run.status}, its events say ${status}`);
}

/** The initiator of a change of status with this error. */
const INITIATOR_OF: Readonly<Record<string, Initiator>> = {
  APPROVAL_REJECTED: 'approval',
  APPROVAL_EXPIRED: 'timeout',
  WAIT_TIMED_OUT: 'timeout',
  RUN_TIMED_OUT: 'timeout',
  SESSION_TIMED_OUT: 'timeout',
  SESSION_LOST: 'timeout',
  POLICY_DENIED: 'policy',
  POLICY_ERROR: 'policy',
};

function hasRightInitiator(event: StatusChanged, approved: boolean, { request }: Run): boolean {
  const { from, to, initiator, actor, approval, externalEvent, error, reason } = event;
  if (from === 'queued' && to === 'enriching') {
    const starter = request === undefined ? 'webhook' : request.slot === undefined ? 'user' : 'system';
    const named = request === undefined || actor === request.actor;
    return initiator === starter && named && externalEvent?.id !== undefined;
  }
  if (to === 'waiting_approval') return approval !== undefined && approval.decision === undefined;
  if (initiator === 'approval') return approval?.decidedBy?.includes(actor) === true;
  // The error of a rollback belongs to the event that started it.
  const code = from === 'rolling_back' ? undefined : (error?.code ?? (to === 'paused' ? reason : undefined));
  const wanted = code === undefined ? undefined : INITIATOR_OF[code];
  if (wanted !== undefined) return initiator === wanted;
  return !(approved && from === 'waiting_approval' && to === 'running');
}

function checkSteps(report: Report, workflow: Workflow | undefined, before: Snapshot, after: Snapshot): void {
  const earlier = new Map(before.steps.map((step) => [step.index, step]));
  const now = new Map(after.steps.map((step) => [step.index, step]));
  for (const step of after.steps) {
    const was = earlier.get(step.index);
    if (was === step) continue;
    const name = `${after.run?.runId}/${step.id}`;
    if (was && step.leaseVersion < was.leaseVersion) report('a lease version never decreases', name);
    const undone =
      was?.status === 'succeeded' && step.status === 'rolled_back' && before.run?.status === 'rolling_back';
    if (was && DONE.includes(was.status) && !undone) report('a finished step does not change', name);
    const isAcknowledged = step.assigned !== undefined && was?.assigned === undefined;
    if (
      was?.status === 'running' &&
      step.status === 'running' &&
      step.leaseVersion <= was.leaseVersion &&
      !isAcknowledged
    ) {
      report('every claim has its own lease version', name);
    }
    if (workflow && idAt(workflow, step) !== step.id) report('the workflow version of a run does not change', name);
    if (step.undoes !== undefined) continue;
    const unmet = workflow && needsOf(workflow, step.index).some((need) => now.get(need)?.status !== 'succeeded');
    if (!was && unmet) report('a step starts only after the steps that it needs', name);
    if (!was && workflow) checkScope(report, workflow, now, step, name);
  }
}

/** A step of a loop runs if and only if the list has its item; one of a call, if the call runs. */
function checkScope(
  report: Report,
  workflow: Workflow,
  now: ReadonlyMap<number, Step>,
  step: Step,
  name: string,
): void {
  const { scope, when } = workflow.steps[step.index] ?? {};
  if (!scope) return;
  const byId = (id: string) => now.get(workflow.steps.findIndex((each) => each.id === id));
  const isSkipped = (each: Step | undefined) => each?.status === 'succeeded' && each.skipped === true;
  const list = scope.item && byId(scope.item.list);
  const items = list?.status === 'succeeded' ? (list.output as unknown[]) : [];
  const runs = !isSkipped(byId(scope.leader)) && (!scope.item || scope.item.position < items.length);
  if (!runs && !isSkipped(step)) report('a step of a loop or call runs only for an item', name);
  if (runs && when === undefined && isSkipped(step)) report('a loop or call runs for every item', name);
}

const idAt = ({ steps }: Workflow, { index, undoes }: Step) =>
  undoes === undefined ? steps[index]?.id : `undo_${steps[undoes]?.id}`;

function checkFacts(report: Report, before: Run | undefined, run: Run, steps: readonly Step[]): void {
  const terminal = TERMINAL.has(run.status);
  const open = steps.filter(({ status }) => status !== 'failed_terminal' && !DONE.includes(status));
  if (terminal && open.length > 0) report('an ended run has no open step', `${run.runId}/${open[0]?.id}`);
  if (run.status !== 'running' && run.status !== 'rolling_back' && steps.some(({ status }) => status === 'running')) {
    report('only a running run has a write in flight', `${run.runId} is ${run.status}`);
  }
  const unknown = steps.some(
    (step) =>
      step.status === 'failed_terminal' &&
      (step.error.code === 'OUTCOME_UNKNOWN' || (step.error.code === 'AGENT_LOST' && !step.mayHaveWritten)) &&
      step.undoes === undefined,
  );
  if (unknown && run.status === 'failed_terminal')
    report('a run with an unknown outcome ends as needs_human', run.runId);
  if (terminal && (!('completedAt' in run) || 'dueAt' in run))
    report('an ended run has its end and no due time', run.runId);
  if (!terminal && run.status !== 'paused' && !('dueAt' in run)) {
    report('every open run has a due time', `${run.runId} is ${run.status}`);
  }
  const pinned = before && JSON.stringify([before.workflow, before.createdAt, before.trigger, before.workspace]);
  if (pinned && pinned !== JSON.stringify([run.workflow, run.createdAt, run.trigger, run.workspace])) {
    report('the workflow version of a run does not change', run.runId);
  }
}

/** A run has succeeded if and only if all steps of its workflow have. */
export function checkSuccess(report: Report, workflow: Workflow | undefined, { run, steps }: Snapshot): void {
  if (!run || !workflow) return;
  if (run.rollbackOf) {
    const undone = run.compensation?.filter(({ outcome }) => outcome === 'reversed').length;
    const whole = undone === run.rollbackOf.steps.length && steps.every(({ status }) => status === 'succeeded');
    if (run.status === 'succeeded' && !whole) {
      report('a rollback has succeeded only if every write was undone', run.runId);
    }
    return;
  }
  const all = steps.length === workflow.steps.length && steps.every(({ status }) => status === 'succeeded');
  if ((run.status === 'succeeded') !== all && (TERMINAL.has(run.status) || all)) {
    report('a run has succeeded if and only if all its steps have', `${run.runId} is ${run.status}`);
  }
}

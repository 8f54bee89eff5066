import { type Clock, isoNow } from '../entry/ports.ts';
import { isSentLater, sealEntry } from '../outbox/outbox.ts';
import type { RunChange } from '../run/commit.ts';
import { CountersignError } from '../run/errors.ts';
import { isAgentTool } from '../run/lease.ts';
import { keyIsFree, type Receipt } from '../run/receipt.ts';
import { isTerminal, type RollbackOf, type Run } from '../run/run.ts';
import { RunDraft } from '../run/run-draft.ts';
import type { CapWrite } from '../run/settings/caps.ts';
import type { Step } from '../run/step.ts';
import { counted, METRICS } from '../telemetry/metrics.ts';
import { workflowOfRun } from '../workflow/action-workflow.ts';
import { withRequestedMode } from '../workflow/requested-mode.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { RunChanger, RunState } from './run-changer.ts';
import { endedSessions } from './session/ended-sessions.ts';
import type { StepMessage } from './step-queue.ts';
import { wakeNextRun } from './wake-next-run.ts';

/** Each try finds one more receipt that another run has changed; a commit begins at most 20 writes. */
const HELD_RECEIPTS_MAX = 60;

export async function loadState(changer: RunChanger, { tenant, runId }: StepMessage): Promise<RunState | undefined> {
  const loaded = await changer.runs.load(tenant, runId);
  if (!loaded) {
    changer.log.warn('a message names a run that does not exist; nothing to do', { tenant, runId });
    return undefined;
  }
  const { name, version } = loaded.run.workflow;
  const replayed = loaded.run.request?.replay?.of;
  const [workflow, settings] = await Promise.all([
    workflowOfRun(changer.definitions, loaded.run, loaded.trigger),
    changer.definitions.settings(tenant),
  ]);
  // After the others: if one of them fails, AWS would suspend the function while this request is open.
  const original = replayed === undefined ? undefined : await changer.runs.load(tenant, replayed);
  const { run, trigger, triggerIsLost } = loaded;
  const undone = run.rollbackOf && (await stepsToUndo(changer, tenant, run.rollbackOf));
  const steps = new Map([...(undone ?? []), ...loaded.steps].map((step) => [step.index, step]));
  const known = { run, trigger, settings, steps, ...(original && { original }) };
  const performed = workflow && withRequestedMode(workflow, run.request?.validationMode);
  const state = {
    ...known,
    workflow: performed ?? emptyWorkflow(name),
    ...(workflow && !trigger.action && { published: workflow }),
  };
  if (!workflow) throw new ContextMissing(state, `its workflow ${name} version ${version} is not published`);
  if (triggerIsLost) throw new ContextMissing(state, 'its trigger is not stored');
  if (run.rollbackOf && !undone) throw new ContextMissing(state, `${run.rollbackOf.runId} is not stored`);
  if (replayed !== undefined && !original) {
    throw new ContextMissing(state, `the run ${replayed}, which it replays, is no longer stored`);
  }
  return state;
}

/** The steps of another run whose writes this run undoes. They never change: that run has ended. */
async function stepsToUndo(
  { runs }: RunChanger,
  tenant: string,
  { runId, steps }: RollbackOf,
): Promise<Step[] | undefined> {
  const rolledBack = await runs.load(tenant, runId);
  return rolledBack?.steps.filter(({ id }) => steps.includes(id));
}

/** Replaces a workflow that is missing, so that its run can be ended. */
const emptyWorkflow = (name: string): PublishedWorkflow => ({
  name,
  onFailure: 'fail',
  onReject: 'fail',
  blastRadius: 'high',
  approvals: {},
  onDrift: 'refuse',
  steps: [],
});

/** The workflow version or the trigger of a run is missing. A retry does not bring it back. */
export class ContextMissing extends CountersignError {
  readonly state: RunState;

  constructor(state: RunState, missing: string) {
    super('CONTEXT_MISSING', `the run cannot continue from ${state.run.status}: ${missing}`);
    this.state = state;
  }
}

/** What follows once a draft is committed. */
export interface FollowUp {
  /** Send a message for this run after this time. */
  wakeAfterMs?: number;
}

export type Drafted<Next extends FollowUp> =
  | { outcome: 'committed'; state: RunState; next: Next }
  | { outcome: 'nothing' | 'lost' }
  | { outcome: 'no_slot'; refused: CapWrite[] };

/** Commits the changes that `drafting` makes to the run, then sends the messages that follow. */
export async function draftAndCommit<Next extends FollowUp>(
  changer: RunChanger,
  state: RunState,
  drafting: (draft: RunDraft, state: RunState) => Promise<Next | undefined>,
): Promise<Drafted<Next>> {
  const held = new Map<string, Receipt>();
  for (let tries = 1; tries <= HELD_RECEIPTS_MAX; tries += 1) {
    const draft = new RunDraft(state, timeOf(changer.clock, state.run), held);
    const next = await drafting(draft, state);
    if (!next || draft.isEmpty) return { outcome: 'nothing' };
    const change = draft.seal();
    const result = await changer.runs.commit(change);
    if (result.outcome !== 'committed') {
      changer.telemetry?.record(counted(METRICS.commitConflicts, { status: result.outcome }));
    }
    if (result.outcome === 'receipt_held') {
      const { receipt } = result;
      if (keyIsFree(receipt)) held.delete(receipt.key);
      else held.set(receipt.key, receipt);
      continue;
    }
    if (result.outcome !== 'committed') {
      // `lost`: another process has changed the run. `no_slot`: the run waits until another run returns its slot.
      changer.log.info('the commit was not made', {
        runId: state.run.runId,
        seq: change.commit.seq,
        why: result.outcome,
      });
      return result;
    }
    changer.telemetry?.committed({ ...change, before: state.steps });
    if (change.creates) changer.telemetry?.committed(change.creates);
    await sendMessages(changer, state, change, next);
    return { outcome: 'committed', state: { ...state, run: change.run, steps: draft.steps }, next };
  }
  // The caller drafts again from a fresh load, or the sweeper sends the run again.
  changer.log.warn('the receipts of a commit changed faster than it could be made', { runId: state.run.runId });
  return { outcome: 'lost' };
}

/** Clocks differ, but the commits of one run never go back in time. */
function timeOf(clock: Clock, { updatedAt }: Run): string {
  const now = isoNow(clock);
  return now > updatedAt ? now : updatedAt;
}

/** The fast path. The sweeper sends a message again that is lost here, because the commit stores its due time. */
async function sendMessages(
  changer: RunChanger,
  { run, settings, steps }: RunState,
  change: RunChange,
  { wakeAfterMs }: FollowUp,
): Promise<void> {
  const { tenant, runId } = run;
  const entries = change.outbox.filter((entry) => !isSentLater(entry));
  if (isTerminal(change.run) && !isTerminal(run)) entries.push(sealEntry(change.run));
  const sends = entries.map((entry) => changer.outbox.dispatch(entry));
  if (wakeAfterMs !== undefined) sends.push(changer.queue.send({ tenant, runId }, wakeAfterMs));
  if (change.creates) sends.push(changer.queue.send({ tenant, runId: change.creates.run.runId }));
  for (const { endSession, afterMs } of endedSessions(change, steps, run)) {
    sends.push(changer.queue.send({ tenant, runId, endSession }, afterMs));
  }
  const { action } = change.run.request ?? {};
  // The command of a session has ended: whether its session has completed is decided now, and not after half an hour.
  if (action?.of && isAgentTool(action.tool) && isTerminal(change.run)) {
    sends.push(changer.queue.send({ tenant, runId: action.of.runId }));
  }
  const freed = change.caps.some(({ kind }) => kind === 'return_slot' || kind === 'release_key');
  if (freed) sends.push(wakeNextRun(changer, tenant, settings));
  for (const sent of await Promise.allSettled(sends)) {
    if (sent.status === 'rejected') {
      changer.log.warn('a message could not be sent; the sweeper will', { runId, error: sent.reason });
    }
  }
}

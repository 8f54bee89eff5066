import { type Clock, isoNow } from '../entry/ports.ts';
import { type CapWrite, nextInLine, othersMayStart, usableShards } from '../run/caps.ts';
import type { RunChange } from '../run/commit.ts';
import { CountersignError } from '../run/errors.ts';
import { keyIsFree, type Receipt } from '../run/receipt.ts';
import type { Run } from '../run/run.ts';
import { RunDraft } from '../run/run-draft.ts';
import type { ClaimedStep, FollowUp } from '../worker/worker.ts';
import type { PublishedWorkflow } from '../workflow/workflow.ts';
import type { RunChanger, RunState } from './run-changer.ts';
import type { StepMessage } from './step-queue.ts';

const WAITING_LINE_LOOKED_AT = 25;
/** Each try meets one more receipt that somebody else has changed; a commit begins at most 20 writes. */
const HELD_RECEIPTS_MET_MAX = 60;
/** So many runs may be woken in vain for one slot, each by the one before it; then the slot is the sweeper's to fill. */
const PASSED_OVER_MAX = 100;

export async function loadState(worker: RunChanger, { tenant, runId }: StepMessage): Promise<RunState | undefined> {
  const loaded = await worker.runs.load(tenant, runId);
  if (!loaded) {
    worker.log.warn('a message names a run that does not exist; nothing to do', { tenant, runId });
    return undefined;
  }
  const { name, version } = loaded.run.workflow;
  const [workflow, settings] = await Promise.all([
    worker.definitions.workflow(tenant, name, version),
    worker.definitions.settings(tenant),
  ]);
  const { run, trigger, triggerIsLost } = loaded;
  const steps = new Map(loaded.steps.map((step) => [step.index, step]));
  if (workflow && !triggerIsLost) return { run, trigger, workflow, settings, steps };
  const missing = workflow ? 'its trigger is not stored' : `its workflow ${name} version ${version} is not published`;
  throw new ContextMissing({ run, trigger, workflow: workflow ?? nothingLeft(name), settings, steps }, missing);
}

/** Stands in for a workflow that is gone, so that its run can be ended. */
const nothingLeft = (name: string): PublishedWorkflow => ({
  name,
  onFailure: 'fail',
  onReject: 'fail',
  blastRadius: 'high',
  approvals: {},
  onDrift: 'refuse',
  steps: [],
});

/** A run without its workflow version or its trigger. Trying again does not bring them back. */
export class ContextMissing extends CountersignError {
  readonly state: RunState;

  constructor(state: RunState, missing: string) {
    super('CONTEXT_MISSING', `the run cannot go on from ${state.run.status}: ${missing}`);
    this.state = state;
  }
}

type Drafting = (draft: RunDraft, state: RunState) => Promise<FollowUp | undefined>;
export type Drafted =
  | { outcome: 'committed'; state: RunState; holds: ClaimedStep[] }
  | { outcome: 'nothing' | 'lost' }
  | { outcome: 'no_slot'; refused: CapWrite[] };

/** Makes one commit of what `drafting` does to the run, and sends on what follows from it. */
export async function draftAndCommit(worker: RunChanger, state: RunState, drafting: Drafting): Promise<Drafted> {
  const held = new Map<string, Receipt>();
  for (let tries = 1; tries <= HELD_RECEIPTS_MET_MAX; tries += 1) {
    const draft = new RunDraft(state, timeOf(worker.clock, state.run), held);
    const followUp = await drafting(draft, state);
    if (!followUp || draft.isEmpty) return { outcome: 'nothing' };
    const change = draft.seal();
    const result = await worker.runs.commit(change);
    if (result.outcome === 'receipt_held') {
      const { receipt } = result;
      if (keyIsFree(receipt)) held.delete(receipt.key);
      else held.set(receipt.key, receipt);
      continue;
    }
    if (result.outcome !== 'committed') {
      // Lost: someone else moved this run. No room: it waits in line, and whoever frees a place wakes it.
      worker.log.info('the commit was not made', {
        runId: state.run.runId,
        seq: change.commit.seq,
        why: result.outcome,
      });
      return result;
    }
    await sendOn(worker, state, change, followUp);
    return { outcome: 'committed', state: { ...state, run: change.run, steps: draft.steps }, holds: followUp.holds };
  }
  // Whoever asked drafts anew on a fresh view of the run, or the sweeper sends it again.
  worker.log.warn('the receipts of a commit changed faster than it could be made', { runId: state.run.runId });
  return { outcome: 'lost' };
}

/** Clocks differ; in the chain of one run time never goes back all the same. */
function timeOf(clock: Clock, { updatedAt }: Run): string {
  const now = isoNow(clock);
  return now > updatedAt ? now : updatedAt;
}

/** The fast path. A message lost here is sent again by the sweeper, because the commit carries its due time. */
async function sendOn(
  worker: RunChanger,
  { run, settings }: RunState,
  change: RunChange,
  followUp: FollowUp,
): Promise<void> {
  const { tenant, runId } = run;
  const sends = change.outbox.map((entry) => worker.outbox.dispatch(entry));
  if (followUp.wakeAfterMs !== undefined) sends.push(worker.queue.send({ tenant, runId }, followUp.wakeAfterMs));
  const freed = change.caps.some(({ kind }) => kind === 'return_slot' || kind === 'release_key');
  if (freed) sends.push(wakeNextInLine(worker, tenant, settings));
  for (const sent of await Promise.allSettled(sends)) {
    if (sent.status === 'rejected') {
      worker.log.warn('a message could not be sent; the sweeper will', { runId, error: sent.reason });
    }
  }
}

/** A slot became free: whoever has waited longest, by its workspace's share, is told to look. */
async function wakeNextInLine(
  worker: RunChanger,
  tenant: string,
  { caps, workspaces, counterShards }: RunState['settings'],
  passedOver: string[] = [],
): Promise<void> {
  const shards = usableShards(caps.maxConcurrency ?? 1, counterShards);
  const limit = WAITING_LINE_LOOKED_AT + passedOver.length;
  const { waiting, running } = await worker.runs.waitingLine(tenant, limit, shards);
  const next = nextInLine(
    waiting.filter(({ runId }) => !passedOver.includes(runId)),
    running,
    workspaces,
  );
  if (next) await worker.queue.send({ tenant, runId: next.runId, passedOver });
}

/**
 * The run that was woken for a free slot cannot take it: its concurrency key is held, or its workflow has as many runs as it
 * may have. Nobody knows that before it tries. The slot goes to the next in line.
 */
export async function passSlotOn(
  worker: RunChanger,
  { run, settings }: RunState,
  { passedOver }: StepMessage,
  refused: readonly CapWrite[],
): Promise<void> {
  if (passedOver === undefined || passedOver.length >= PASSED_OVER_MAX) return;
  const { caps, counterShards } = settings;
  if (!othersMayStart(refused, usableShards(caps.maxConcurrency ?? 1, counterShards))) return;
  await wakeNextInLine(worker, run.tenant, settings, [...passedOver, run.runId]).catch((error: unknown) => {
    worker.log.warn('the next run in line could not be woken; the sweeper will', { runId: run.runId, error });
  });
}

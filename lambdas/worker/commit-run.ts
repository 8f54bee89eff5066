import { type Clock, isoNow } from '../entry/ports.ts';
import { nextInLine, usableShards } from '../run/caps.ts';
import type { RunChange } from '../run/commit.ts';
import { keyIsFree, type Receipt } from '../run/receipt.ts';
import type { Run } from '../run/run.ts';
import { RunDraft } from '../run/run-draft.ts';
import type { StepMessage } from './step-queue.ts';
import type { FollowUp, HeldStep, Mover, RunState } from './worker.ts';

const WAITING_LINE_LOOKED_AT = 25;
/** Each try meets one more receipt that somebody else has changed; a commit begins at most 20 writes. */
const HELD_RECEIPTS_MET_MAX = 60;

export async function loadState(worker: Mover, { tenant, runId }: StepMessage): Promise<RunState | undefined> {
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
  if (!workflow) throw new Error(`run ${runId} is pinned to ${name} version ${version}, which is not published`);
  const steps = new Map(loaded.steps.map((step) => [step.index, step]));
  return { run: loaded.run, trigger: loaded.trigger, workflow, settings, steps };
}

type Drafting = (draft: RunDraft, state: RunState) => Promise<FollowUp | undefined>;
export type Drafted =
  | { outcome: 'committed'; state: RunState; holds: HeldStep[] }
  | { outcome: 'nothing' | 'lost' | 'no_room' };

/** Makes one commit of what `drafting` does to the run, and sends on what follows from it. */
export async function draftAndCommit(worker: Mover, state: RunState, drafting: Drafting): Promise<Drafted> {
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
      return { outcome: result.outcome };
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
  worker: Mover,
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

/** A place became free: whoever has waited longest, by its workspace's share, is told to look. */
async function wakeNextInLine(
  worker: Mover,
  tenant: string,
  { caps, workspaces, counterShards }: RunState['settings'],
) {
  const shards = usableShards(caps.maxConcurrency ?? 1, counterShards);
  const { waiting, running } = await worker.runs.waitingLine(tenant, WAITING_LINE_LOOKED_AT, shards);
  const next = nextInLine(waiting, running, workspaces);
  if (next) await worker.queue.send({ tenant, runId: next.runId });
}

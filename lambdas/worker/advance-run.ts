import { type Clock, isoNow } from '../entry/ports.ts';
import { nextInLine, usableShards } from '../run/caps.ts';
import type { RunChange } from '../run/commit.ts';
import type { Receipt } from '../run/receipt.ts';
import { isTerminal, type Run } from '../run/run.ts';
import { RunDraft } from '../run/run-draft.ts';
import { performStep, type StepOutcome } from './perform-step.ts';
import { settleOutcome } from './settle-outcome.ts';
import type { StepMessage } from './step-queue.ts';
import { takeUp } from './take-up.ts';
import type { FollowUp, HeldReceipts, HeldStep, Mover, RunState, Worker } from './worker.ts';

/** Others may move the run while a step of ours is at work: its outcome is drafted again on what they left. */
const OUTCOME_TRIES_MAX = 8;
const WAITING_LINE_LOOKED_AT = 25;

/**
 * THE SPINE. A message says "look at this run"; this worker takes up what is due, and goes on from step to step
 * for as long as it holds leases and has time:
 *
 *   load -> take up (start, or claim what is due: lease + intent in one commit)
 *        -> perform at the target -> commit the outcome, and with it the next steps' leases and intents -> perform -> ...
 *        -> terminal commit
 *
 * Steps whose needs are met run side by side; their outcomes are committed one after the other.
 * Policy and approval stand between proposing a write and committing its intent (claim-step.ts, govern.ts).
 */
export async function advanceRun(worker: Worker, message: StepMessage): Promise<void> {
  let state = await loadState(worker, message);
  if (!state || isTerminal(state.run)) return;
  const atWork = new Map<number, Promise<{ held: HeldStep; outcome: StepOutcome }>>();
  const begin = (from: RunState, holds: HeldStep[]) => {
    for (const held of holds) {
      const performed = performStep(worker, from.run.tenant, from.run.runId, held);
      atWork.set(
        held.step.index,
        performed.then((outcome) => ({ held, outcome })),
      );
    }
  };

  const taken = await draftAndCommit(worker, state, (draft, from, known) => takeUp(worker, from, draft, known));
  if (taken.outcome !== 'committed') return;
  state = taken.state;
  begin(state, taken.holds);
  // A commit that could not be made must not leave other steps behind: work that nobody waits for freezes with this
  // sandbox, and would write to its target whenever the sandbox thaws, under a lease long lost.
  const failures: unknown[] = [];
  while (atWork.size > 0) {
    const { held, outcome } = await Promise.race(atWork.values());
    atWork.delete(held.step.index);
    try {
      const settled = await commitOutcome(worker, state, held, outcome);
      if (!settled) continue;
      state = settled.state;
      begin(state, settled.holds);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

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

type Drafting = (draft: RunDraft, state: RunState, known: HeldReceipts) => Promise<FollowUp | undefined>;
export type Drafted =
  | { outcome: 'committed'; state: RunState; holds: HeldStep[] }
  | { outcome: 'nothing' | 'lost' | 'no_room' };

/** Makes one commit of what `drafting` does to the run, and sends on what follows from it. */
export async function draftAndCommit(worker: Mover, state: RunState, drafting: Drafting): Promise<Drafted> {
  const known = new Map<string, Receipt>();
  for (;;) {
    const draft = new RunDraft(state, timeOf(worker.clock, state.run));
    const followUp = await drafting(draft, state, known);
    if (!followUp || draft.isEmpty) return { outcome: 'nothing' };
    const change = draft.seal();
    const result = await worker.runs.commit(change);
    if (result.outcome === 'receipt_held') {
      known.set(result.receipt.key, result.receipt);
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
}

/** Clocks differ; in the chain of one run time never goes back all the same. */
function timeOf(clock: Clock, { updatedAt }: Run): string {
  const now = isoNow(clock);
  return now > updatedAt ? now : updatedAt;
}

/** Commits what became of a held step, on fresher and fresher views of the run, while the step is still ours. */
async function commitOutcome(worker: Worker, from: RunState, held: HeldStep, outcome: StepOutcome) {
  const { tenant, runId } = from.run;
  let state: RunState | undefined = from;
  for (let tries = 1; state && tries <= OUTCOME_TRIES_MAX; tries += 1) {
    const now = state.steps.get(held.step.index);
    const ours = now?.status === 'running' && now.leaseVersion === held.step.leaseVersion;
    if (!ours || isTerminal(state.run)) return undefined;
    const drafted = await draftAndCommit(worker, state, (draft, view, known) =>
      settleOutcome(worker, view, draft, held, outcome, known),
    );
    if (drafted.outcome === 'committed') return drafted;
    state = await loadState(worker, { tenant, runId });
  }
  return undefined;
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

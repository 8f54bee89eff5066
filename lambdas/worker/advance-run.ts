import { isoNow } from '../entry/ports.ts';
import type { Receipt } from '../run/receipt.ts';
import { isTerminal } from '../run/run.ts';
import { performStep } from './perform-step.ts';
import { planOutcome } from './plan-outcome.ts';
import { planTakeUp } from './plan-take-up.ts';
import type { StepMessage } from './step-queue.ts';
import type { HeldReceipts, HeldStep, Plan, RunState, Worker } from './worker.ts';

/**
 * THE SPINE. A message says "look at this run"; this worker takes up what is due, and goes on from step to step
 * for as long as it holds the lease and has time:
 *
 *   load -> take up (start, or claim a step: lease + intent in one commit)
 *        -> perform at the target -> commit the outcome, and with it the next step's lease and intent -> perform -> ...
 *        -> terminal commit
 *
 * Policy and approval belong between proposing a write and committing its intent (plan-next-step.ts).
 */
export async function advanceRun(worker: Worker, message: StepMessage): Promise<void> {
  const state = await load(worker, message);
  if (!state) return;
  let held = await commitPlan(worker, state, (known) => planTakeUp(worker, state, known));
  while (held) {
    const mine = held;
    const outcome = await performStep(worker, mine);
    held = await commitPlan(worker, mine.state, (known) => planOutcome(worker, mine, outcome, known));
  }
}

async function load(worker: Worker, { tenant, runId }: StepMessage): Promise<RunState | undefined> {
  const loaded = await worker.runs.load(tenant, runId);
  if (!loaded) {
    worker.log.warn('a message names a run that does not exist; nothing to do', { tenant, runId });
    return undefined;
  }
  if (isTerminal(loaded.run)) return undefined;
  const { name, version } = loaded.run.workflow;
  const workflow = await worker.definitions.workflow(tenant, name, version);
  if (!workflow) throw new Error(`run ${runId} is pinned to ${name} version ${version}, which is not published`);
  const steps = new Map(loaded.steps.map((step) => [step.index, step]));
  return { run: loaded.run, trigger: loaded.trigger, workflow, steps };
}

/** Makes a planned commit; returns the step it handed to this worker, if any. */
async function commitPlan(
  worker: Worker,
  state: RunState,
  planWith: (known: HeldReceipts) => Promise<Plan | undefined>,
): Promise<HeldStep | undefined> {
  const known = new Map<string, Receipt>();
  for (;;) {
    const plan = await planWith(known);
    if (!plan) return undefined;
    const change = plan.draft.seal();
    const result = await worker.runs.commit(change);
    if (result.outcome === 'receipt_held') {
      known.set(result.receipt.key, result.receipt);
      continue;
    }
    if (result.outcome === 'lost') {
      // Someone else moved this run or took its step over. What this worker knows is stale: it writes nothing more.
      worker.log.info('lost the run to another worker', { runId: state.run.runId, seq: change.commit.seq });
      return undefined;
    }
    await sendOn(worker, state, plan);
    return plan.hold && { ...plan.hold, state: { ...state, run: change.run, steps: plan.steps } };
  }
}

/** The fast path. A message lost here is sent again by the sweeper, because the commit carries its due time. */
async function sendOn(worker: Worker, { run }: RunState, plan: Plan): Promise<void> {
  const { tenant, runId } = run;
  const sends: Promise<void>[] = plan.promises.map((entry) => worker.outbox.dispatch(entry));
  if (plan.wakeAfterMs !== undefined) sends.push(worker.queue.send({ tenant, runId }, plan.wakeAfterMs));
  for (const sent of await Promise.allSettled(sends)) {
    if (sent.status === 'rejected') {
      worker.log.warn('a message could not be sent; the sweeper will', {
        runId,
        at: isoNow(worker.clock),
        error: sent.reason,
      });
    }
  }
}

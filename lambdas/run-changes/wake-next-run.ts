import { type CapWrite, nextInLine, othersMayStart, usableShards } from '../run/settings/caps.ts';
import type { RunChanger, RunState } from './run-changer.ts';
import type { StepMessage } from './step-queue.ts';

const WAITING_RUNS_READ = 25;
/** At most this many runs are woken one after the other for one free slot; then the sweeper fills it. */
const PASSED_OVER_MAX = 100;

/** A slot is free: wakes the run that has waited longest, by the share of its workspace. */
export async function wakeNextRun(
  changer: RunChanger,
  tenant: string,
  { caps, workspaces, counterShards }: RunState['settings'],
  passedOver: string[] = [],
): Promise<void> {
  const shards = usableShards(caps.maxConcurrency ?? 1, counterShards);
  const limit = WAITING_RUNS_READ + passedOver.length;
  const { waiting, running } = await changer.runs.waitingLine(tenant, limit, shards);
  const next = nextInLine(
    waiting.filter(({ runId }) => !passedOver.includes(runId)),
    running,
    workspaces,
  );
  if (next) await changer.queue.send({ tenant, runId: next.runId, passedOver });
}

/**
 * The run that was woken for a free slot cannot use it: its concurrency key is taken, or its workflow is at its own cap.
 * That is known only once the run tries to start. The slot is offered to the next run in line.
 */
export async function offerSlotToNext(
  changer: RunChanger,
  { run, settings }: RunState,
  { passedOver }: StepMessage,
  refused: readonly CapWrite[],
): Promise<void> {
  if (passedOver === undefined || passedOver.length >= PASSED_OVER_MAX) return;
  const { caps, counterShards } = settings;
  if (!othersMayStart(refused, usableShards(caps.maxConcurrency ?? 1, counterShards))) return;
  await wakeNextRun(changer, run.tenant, settings, [...passedOver, run.runId]).catch((error: unknown) => {
    changer.log.warn('the next run in line could not be woken; the sweeper will', { runId: run.runId, error });
  });
}

import { isoNow } from '../entry/ports.ts';
import { hasExpired } from '../run/lease.ts';
import type { RunningStep } from '../run/step.ts';
import type { RunChanger, RunState } from '../run-changes/run-changer.ts';
import type { StepMessage } from '../run-changes/step-queue.ts';

type Watcher = Pick<RunChanger, 'queue' | 'clock' | 'log'>;

/** After a lost race: the other commit may have renewed the lease. */
const CHECK_AGAIN_AFTER_MS = 1_000;

/**
 * Sends a message for the time when the lease of a step ends, because a sweep every minute is too slow for an agent that
 * is lost. There is one such message at a time: the worker that receives it too early sends it again.
 */
export async function watchLease(
  watcher: Watcher,
  run: { tenant: string; runId: string },
  { index, leaseVersion, lease }: Pick<RunningStep, 'index' | 'leaseVersion' | 'lease'>,
): Promise<void> {
  const delayMs = Math.max(CHECK_AGAIN_AFTER_MS, Date.parse(lease.expiresAt) - watcher.clock.now());
  const { tenant, runId } = run;
  await send(watcher, { tenant, runId, watches: { stepIndex: index, leaseVersion } }, delayMs);
}

/** The lease was renewed after the message was sent: sends the message again for the new end of the lease. */
export async function watchRenewedLease(watcher: Watcher, message: StepMessage, { steps }: RunState): Promise<void> {
  const step = message.watches && steps.get(message.watches.stepIndex);
  if (step?.status !== 'running' || step.leaseVersion !== message.watches?.leaseVersion) return;
  if (!hasExpired(step.lease, isoNow(watcher.clock))) await watchLease(watcher, message, step);
}

export async function watchAfterLostRace(watcher: Watcher, message: StepMessage): Promise<void> {
  if (message.watches) await send(watcher, message, CHECK_AGAIN_AFTER_MS);
}

/** If it is lost, the sweeper finds the lease, up to a minute later. */
async function send({ queue, log }: Watcher, message: StepMessage, delayMs: number): Promise<void> {
  try {
    await queue.send(message, delayMs);
  } catch (error) {
    log.warn('a message for the end of a lease could not be sent; the sweeper will', { ...message, error });
  }
}

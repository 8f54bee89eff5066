import { earlier, isAgentTool, LEASE_DURATION_MS, later } from '../../run/lease.ts';
import type { ActiveStatus } from '../../run/run.ts';
import type { RunDraft } from '../../run/run-draft.ts';
import { type Step, waitsForFlag } from '../../run/step.ts';
import type { FollowUp } from '../commit-run.ts';
import { DELAY_MAX_MS } from '../step-queue.ts';

/**
 * How long a run with work left may wait for its message before the sweeper sends another. As long as a lease: then the claim of
 * a step right after it does not change when the run is due, and no entry of the index moves.
 */
export const PICK_UP_WITHIN_MS = LEASE_DURATION_MS;
/** Step Functions expires approvals. If it did not, the sweeper sends the run this long after the expiry. */
const RECONCILE_APPROVAL_AFTER_MS = 60_000;

/** When the run must be processed again. The sweeper sends a message for it then. */
export function nextDueAt(draft: RunDraft, workLeft: boolean): string | undefined {
  const { run } = draft;
  const steps = [...draft.steps.values()];
  const asked = steps.filter(({ status }) => status === 'waiting_approval');
  if (run.status === 'paused') return asked.flatMap((step) => stepDueAt(step) ?? []).sort()[0];
  const times = steps.flatMap((step) => stepDueAt(step) ?? []);
  if (workLeft) times.push(later(draft.at, PICK_UP_WITHIN_MS));
  // The deadline does not apply while people decide or a flag is off, nor to a rollback that has begun.
  const waits = run.status === 'waiting_approval' || waitsForFlag(run, draft.steps);
  if (!waits && run.status !== 'rolling_back') times.push(run.deadlineAt);
  return times.reduce(earlier);
}

function stepDueAt(step: Step): string | undefined {
  switch (step.status) {
    case 'running':
      return step.lease.expiresAt;
    case 'failed_retryable':
      return step.retryAt;
    case 'waiting_external':
      return step.awaits.kind === 'session' ? step.awaits.lookAt : step.awaits.until;
    case 'ready': {
      const pickUpBy = later(step.updatedAt, PICK_UP_WITHIN_MS);
      return (step.notBefore ?? pickUpBy) > pickUpBy ? step.notBefore : pickUpBy;
    }
    case 'waiting_approval':
      return later(step.expiresAt, RECONCILE_APPROVAL_AFTER_MS);
    default:
      return undefined;
  }
}

/** A message for work that is due now or soon. Steps in flight need none, and the sweeper sends what is due later. */
export function wakeAfter(draft: RunDraft, workLeft: boolean, dueAt: string | undefined): FollowUp {
  const steps = [...draft.steps.values()];
  const running = steps.filter((step) => step.status === 'running');
  // A worker performs a step and will continue the run. If only agents perform steps, nothing would for up to an hour.
  const inFlight = running.some(({ tool }) => !isAgentTool(tool));
  const status = draft.run.status as ActiveStatus;
  if (status === 'running' || (status === 'rolling_back' && workLeft)) {
    if (workLeft && !inFlight) return { wakeAfterMs: 0 };
    const retries = steps.flatMap((step) => (step.status === 'failed_retryable' ? [step.retryAt] : [])).sort();
    return running.length > 0 && !inFlight ? wakeAt(draft, retries[0]) : {};
  }
  const timed = status === 'failed_retryable' || status === 'waiting_external' || status === 'rolling_back';
  return timed ? wakeAt(draft, dueAt) : {};
}

/** A message cannot be delayed for longer: it would come early, read the run, and find nothing due. */
function wakeAt({ at }: RunDraft, time: string | undefined): FollowUp {
  if (time === undefined) return {};
  const wakeAfterMs = Math.max(0, Date.parse(time) - Date.parse(at));
  return wakeAfterMs > DELAY_MAX_MS ? {} : { wakeAfterMs };
}

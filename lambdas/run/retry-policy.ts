/** The ladder: a blip, a restart, an incident, an outage. The last rung repeats. */
const BACKOFF_LADDER_MS = [5_000, 30_000, 2 * 60_000, 10 * 60_000];
export const DEFAULT_ATTEMPTS = BACKOFF_LADDER_MS.length + 1;

/** Full jitter, but never sooner than the target asked. `attempt` counts from 1; `random` is in [0, 1). */
export function backoffMs(attempt: number, random: number, retryAfterMs = 0, ladderMs = BACKOFF_LADDER_MS): number {
  const rung = ladderMs[Math.min(attempt, ladderMs.length) - 1] ?? 0;
  return Math.max(Math.ceil(rung * random), retryAfterMs);
}

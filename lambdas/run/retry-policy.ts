/** Long enough for a short failure, a restart, an incident, an outage. The last delay repeats. */
const BACKOFF_DELAYS_MS = [5_000, 30_000, 2 * 60_000, 10 * 60_000];
export const DEFAULT_ATTEMPTS = BACKOFF_DELAYS_MS.length + 1;
/** A destructive write is tried once, unless the workflow says otherwise. */
const DESTRUCTIVE_ATTEMPTS = 1;

/** How often a step's call may be made. An undo has no definition; it removes only what the run itself wrote. */
export function attemptsOf(
  operation: { destructive?: true; attempts?(input: unknown): number } | undefined,
  definition: { retry?: { attempts: number } } | undefined,
  input?: unknown,
): number {
  if (operation?.attempts) return definition?.retry?.attempts ?? operation.attempts(input);
  const usual = operation?.destructive && definition ? DESTRUCTIVE_ATTEMPTS : DEFAULT_ATTEMPTS;
  return definition?.retry?.attempts ?? usual;
}

/** Full jitter, but not before the time that the target requested. `attempt` counts from 1; `random` is in [0, 1). */
export function backoffMs(attempt: number, random: number, retryAfterMs = 0, delaysMs = BACKOFF_DELAYS_MS): number {
  const delay = delaysMs[Math.min(attempt, delaysMs.length) - 1] ?? 0;
  return Math.max(Math.ceil(delay * random), retryAfterMs);
}

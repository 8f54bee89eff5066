import type { Commit } from '../commit.ts';
import { CountersignError } from '../errors.ts';
import { CHANGED_AFTER_END, isTerminal, type Run, TERMINAL_STATUSES, type TerminalRun } from '../run.ts';

/** Throws if a commit would change anything of an ended run but what people add to it afterwards. */
export function assertOnlyChangedAfterEnd(
  before: Run,
  after: Run,
  besides: Record<'steps' | 'approvals', number>,
): void {
  if (!isTerminal(before)) return;
  const same = JSON.stringify(immutableOf(before)) === JSON.stringify(immutableOf(after));
  if (same && besides.steps === 0 && besides.approvals === 0) return;
  throw new CountersignError(
    'RUN_TERMINAL_STATE',
    `run ${before.runId} has ended as ${before.status}; a terminal run never changes`,
  );
}

function immutableOf(run: Run): Record<string, unknown> {
  const changing: readonly string[] = CHANGED_AFTER_END;
  return Object.fromEntries(
    Object.entries(run).filter(([name, value]) => value !== undefined && !changing.includes(name)),
  );
}

/** It is unknown whether a write of the ended run was made, and nobody has resolved it. Such a run is not deleted. */
export const awaitsResolution = ({ status, compensation, resolution }: TerminalRun): boolean =>
  resolution === undefined &&
  (status === 'needs_human' || compensation?.some(({ outcome }) => outcome === 'unknown') === true);

/** The commit that ends its run. Commits after it are addenda to the evidence. */
export const endsRun = ({ events }: Pick<Commit, 'events'>): boolean =>
  events.some(
    (event) => event.type === 'run.status_changed' && (TERMINAL_STATUSES as readonly string[]).includes(event.to),
  );

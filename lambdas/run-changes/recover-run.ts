import { recordedError } from '../run/errors.ts';
import type { Resumed } from '../run/events/run-events.ts';
import { hasExpired } from '../run/lease.ts';
import { INACTIVITY_MAX_MS } from '../run/run.ts';
import type { RunDraft } from '../run/run-draft.ts';
import { waitsForFlag } from '../run/step.ts';
import type { RunChanger, RunState } from './run-changer.ts';

/** An orphaned run is resumed this often before it ends. */
export const ORPHAN_RESUMES_MAX = 3;

/** Why the run must end now: it is past its deadline, or resuming it did not help. Time spent on approvals, or until a flag is on, does not count. */
export function overdueError({ run, steps }: RunState, now: string) {
  if (run.status === 'waiting_approval' || run.status === 'rolling_back' || waitsForFlag(run, steps)) return undefined;
  if (run.deadlineAt <= now) {
    const signals = [...steps.values()].flatMap((step) =>
      step.status === 'waiting_external' && step.awaits.kind === 'signal' ? [`"${step.awaits.event}"`] : [],
    );
    const waited = signals.length > 0 ? `; it waited for the signal ${signals.join(', ')}` : '';
    return recordedError('RUN_TIMED_OUT', `the run was not finished by its deadline, ${run.deadlineAt}${waited}`);
  }
  const resumes = run.orphanResumes ?? 0;
  if (isOrphaned(run, now) && resumes >= ORPHAN_RESUMES_MAX) {
    const message = `the run has not changed since ${run.updatedAt}, and resuming it ${resumes} times did not help`;
    return recordedError('RUN_ORPHANED', message);
  }
  return undefined;
}

/** No worker has changed the run for so long that its messages must be lost. */
const isOrphaned = ({ status, updatedAt }: RunState['run'], now: string): boolean =>
  status === 'running' && Date.parse(now) - Date.parse(updatedAt) >= INACTIVITY_MAX_MS;

/**
 * Records that the run continues from its last commit after its worker was lost: the run is orphaned, or the lease of a
 * step has expired. The receipt of each step then decides what may be repeated.
 */
export function noteResume(changer: Pick<RunChanger, 'log'>, { run, steps }: RunState, draft: RunDraft): void {
  if (run.stopRequest) return;
  // An agent may run a command for an hour, and renews its lease without a commit.
  const inFlight = [...steps.values()].some((step) => step.status === 'running' && !hasExpired(step.lease, draft.at));
  if (isOrphaned(run, draft.at) && !inFlight) {
    const { tenant, runId, updatedAt: silentSince } = run;
    changer.log.warn('a run was orphaned and is resumed', { code: 'RUN_ORPHANED', tenant, runId, silentSince });
    draft.note({ orphanResumes: (run.orphanResumes ?? 0) + 1 });
    recordResume(draft, { because: 'orphaned', silentSince });
    return;
  }
  const lost = [...steps.values()].some((step) => step.status === 'running' && hasExpired(step.lease, draft.at));
  if (lost) recordResume(draft, { because: 'lease_expired' });
}

export function recordResume(draft: RunDraft, resumed: Resumed): void {
  const resumeCount = (draft.run.resumeCount ?? 0) + 1;
  draft.note({ resumeCount }).record({ type: 'run.resumed', resumeCount, ...resumed });
}

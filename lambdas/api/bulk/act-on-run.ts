import type * as z from 'zod';
import { Problem } from '../../entry/http.ts';
import { CountersignError, refusalOf } from '../../run/errors.ts';
import type { CommitEvent } from '../../run/events/events.ts';
import { ACTIVE_STATUSES, type RunStatus, TERMINAL_STATUSES } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import { type Command, controlRun, RunChanged } from '../../run-changes/control/control-run.ts';
import { type Resolving, resolveRun } from '../../run-changes/control/resolve-run.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { RouteDefinition } from '../contract/route.ts';
import type { BulkAction } from '../contract/runs/bulk.ts';
import { caseRoutes, controlRoutes } from '../contract/runs/run-control.ts';
import { startRoutes } from '../contract/runs/start.ts';
import { rerunOnce, type StartPorts } from '../start/start.ts';
import type { BulkJob, BulkResult } from './bulk-job.ts';

const COMMITS_READ_MAX = 100;
/** One try for each commit that others make between reading the run and changing it. */
const TRIES_MAX = 32;

export interface Actor extends Pick<RunChanger, 'clock' | 'log'> {
  runs: Pick<RunStore, 'listRuns' | 'listCommits'>;
  /** The ports of the functions that act on one run. */
  changer: RunChanger;
  starter: StartPorts;
}

type MatchedRun = BulkJob['runs'][number];

interface Action {
  /** The route for one run: its right, and the body that the options must be. */
  route: RouteDefinition & { body: z.ZodType };
  appliesTo: readonly RunStatus[];
  act(actor: Actor, caller: Caller, job: BulkJob, run: MatchedRun): Promise<unknown>;
  /** The event in a run that this action leaves; none if the action itself recognises a repetition. */
  leaves?: (event: CommitEvent, person: string) => boolean;
}

/** Each action is what the route for one run does, with the same commits. */
export const ACTIONS: Record<BulkAction, Action> = {
  cancel: {
    route: controlRoutes.cancelRun,
    appliesTo: ACTIVE_STATUSES,
    act: (actor, _caller, job, run) => controlOnce(actor, job, run, { kind: 'cancel', ...job.options }),
    leaves: (event, person) => event.type === 'run.stop_requested' && event.kind === 'cancel' && event.actor === person,
  },
  retry: {
    route: controlRoutes.retryRun,
    appliesTo: ['failed_retryable', 'paused'],
    act: (actor, _caller, job, run) => controlOnce(actor, job, run, { kind: 'retry', ...job.options }),
    leaves: (event, person) => event.type === 'step.retry_requested' && event.actor === person,
  },
  rerun: {
    route: startRoutes.rerunRun,
    appliesTo: TERMINAL_STATUSES,
    act: ({ starter }, caller, { jobId, options }, { runId }) =>
      rerunOnce(starter, caller, `${jobId}.${runId}`, runId, options as Parameters<typeof rerunOnce>[4]),
  },
  // The same resolution again changes nothing.
  resolve: {
    route: caseRoutes.resolveRun,
    appliesTo: ['needs_human', 'failed_terminal', 'timed_out'],
    act: ({ changer }, { tenant, person }, { options }, { runId }) =>
      resolveRun(changer, { tenant, runId }, options as unknown as Resolving, person),
  },
};

/** Acts on one run, unless an earlier request of the job has. Never throws: one run must not stop the others. */
export async function actOnRun(actor: Actor, caller: Caller, job: BulkJob, run: MatchedRun): Promise<BulkResult> {
  const { runId } = run;
  try {
    await ACTIONS[job.action].act(actor, caller, job, run);
    return { runId, outcome: 'done' };
  } catch (error) {
    return resultOf(actor, job, run, error).catch((cause: unknown) => failed(actor, job, run, cause));
  }
}

/** An action that failed may have been taken: by this request, or by another one of the job. */
async function resultOf(actor: Actor, job: BulkJob, run: MatchedRun, error: unknown): Promise<BulkResult> {
  const { runId } = run;
  if (ACTIONS[job.action].leaves && (await ownCommit(actor.runs, job, run)).isDone) return { runId, outcome: 'done' };
  const refusal = error instanceof Problem ? error : refusalOf(error);
  if (refusal && refusal.status < 500) return { runId, outcome: 'refused', reason: refusal.message };
  return failed(actor, job, run, error);
}

function failed({ log }: Actor, { jobId }: BulkJob, { runId }: MatchedRun, error: unknown): BulkResult {
  log.error('a bulk action failed for a run', { jobId, runId, error });
  return { runId, outcome: 'failed', reason: 'an internal error occurred; check this run, and act on it again' };
}

/**
 * Sends a command, once for each job. The commit is made only if nobody has changed the run since the job was known not
 * to have: so two requests of a job, and a repeated one, make one commit.
 */
async function controlOnce({ runs, changer }: Actor, job: BulkJob, run: MatchedRun, command: Command): Promise<void> {
  let expectedSeq = run.seq;
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    try {
      await controlRun(changer, { tenant: job.tenant, runId: run.runId }, command, job.person, { expectedSeq });
      return;
    } catch (error) {
      if (!(error instanceof RunChanged)) throw error;
    }
    const { isDone, lastSeq } = await ownCommit(runs, job, run);
    if (isDone) return;
    expectedSeq = lastSeq;
  }
  throw new CountersignError('CONFLICT', 'the run is changing too fast; try again');
}

/** Whether a commit since the preview is of the job, and the number of the last commit. */
async function ownCommit(
  runs: Actor['runs'],
  { tenant, action, person }: BulkJob,
  { runId, seq }: MatchedRun,
): Promise<{ isDone: boolean; lastSeq: number }> {
  let lastSeq = seq;
  for (;;) {
    const commits = await runs.listCommits(tenant, runId, { after: lastSeq, limit: COMMITS_READ_MAX });
    const isOwn = (event: CommitEvent) => ACTIONS[action].leaves?.(event, person) === true;
    if (commits.some(({ events }) => events.some(isOwn))) return { isDone: true, lastSeq };
    lastSeq = commits.at(-1)?.seq ?? lastSeq;
    if (commits.length < COMMITS_READ_MAX) return { isDone: false, lastSeq };
  }
}

import type * as z from 'zod';
import { type HttpEvent, type HttpResponse, Problem } from '../../entry/http.ts';
import type { CommitEvent } from '../../run/events/events.ts';
import { ACTIVE_STATUSES, type RunStatus, TERMINAL_STATUSES } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import type { Caller } from '../authorizer/caller.ts';
import type { BulkAction } from '../contract/bulk.ts';
import { type RouteDefinition, routeKey } from '../contract/route.ts';
import { caseRoutes, controlRoutes } from '../contract/runs.ts';
import { startRoutes } from '../contract/start.ts';
import { type ControlPorts, handleControl } from '../runs/control.ts';
import { handleStart, type StartPorts } from '../start/start.ts';
import type { BulkJob, BulkResult } from './bulk-job.ts';

const COMMITS_READ_MAX = 100;

export interface Actor extends Pick<RunChanger, 'clock' | 'log'> {
  runs: Pick<RunStore, 'listRuns' | 'listCommits'>;
  /** The ports of the functions that act on one run. */
  changer: ControlPorts;
  starter: StartPorts;
}

interface Action {
  route: RouteDefinition & { body: z.ZodType };
  appliesTo: readonly RunStatus[];
  handle(actor: Actor, event: HttpEvent): Promise<HttpResponse>;
  /** The event in a run that this action leaves; none if the action itself recognises a repetition. */
  leaves?: (event: CommitEvent, person: string) => boolean;
}

/** Each action is the route for one run: the same checks, rights and commits. */
export const ACTIONS: Record<BulkAction, Action> = {
  cancel: {
    route: controlRoutes.cancelRun,
    appliesTo: ACTIVE_STATUSES,
    handle: ({ changer }, event) => handleControl(changer, event),
    leaves: (event, person) => event.type === 'run.stop_requested' && event.kind === 'cancel' && event.actor === person,
  },
  retry: {
    route: controlRoutes.retryRun,
    appliesTo: ['failed_retryable', 'paused'],
    handle: ({ changer }, event) => handleControl(changer, event),
    leaves: (event, person) => event.type === 'step.retry_requested' && event.actor === person,
  },
  rerun: {
    route: startRoutes.rerunRun,
    appliesTo: TERMINAL_STATUSES,
    handle: ({ starter }, event) => handleStart(starter, event),
  },
  // The same resolution again changes nothing.
  resolve: {
    route: caseRoutes.resolveRun,
    appliesTo: ['needs_human', 'failed_terminal', 'timed_out'],
    handle: ({ changer }, event) => handleControl(changer, event),
  },
};

/** Acts on one run, unless an earlier request of the job has. Never throws: one run must not stop the others. */
export async function actOnRun(
  actor: Actor,
  caller: Caller,
  job: BulkJob,
  { runId, seq }: { runId: string; seq: number },
): Promise<BulkResult> {
  try {
    if (await wasDone(actor, job, runId, seq)) return { runId, outcome: 'done' };
    await ACTIONS[job.action].handle(actor, requestFor(caller, job, runId));
    return { runId, outcome: 'done' };
  } catch (error) {
    if (error instanceof Problem && error.status < 500) return { runId, outcome: 'refused', reason: error.message };
    actor.log.error('a bulk action failed for a run', { jobId: job.jobId, runId, error });
    return { runId, outcome: 'failed', reason: 'an internal error occurred; act on this run again' };
  }
}

async function wasDone({ runs }: Actor, { tenant, action, person }: BulkJob, runId: string, seq: number) {
  const { leaves } = ACTIONS[action];
  if (!leaves) return false;
  const commits = await runs.listCommits(tenant, runId, { after: seq, limit: COMMITS_READ_MAX });
  return commits.some(({ events }) => events.some((event) => leaves(event, person)));
}

/** The request that the caller would send for this run. The key makes its repetition harmless. */
function requestFor(caller: Caller, { jobId, action, options }: BulkJob, runId: string): HttpEvent {
  const { route } = ACTIONS[action];
  return {
    routeKey: routeKey(route),
    rawPath: route.path.replace('{id}', runId),
    headers: { 'idempotency-key': `${jobId}.${runId}` },
    pathParameters: { id: runId },
    body: JSON.stringify(options),
    isBase64Encoded: false,
    requestContext: { authorizer: { lambda: caller } },
  } as unknown as HttpEvent;
}

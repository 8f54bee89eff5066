import { type Command, controlRun } from '../../run-changes/control-run.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import type { Caller } from '../authorizer/caller.ts';
import { outboxRoutes } from '../contract/operations.ts';
import { controlRoutes, type RunSummary } from '../contract/runs.ts';
import { outboxHandlers } from '../operations/outbox.ts';
import { router } from '../router.ts';
import { runSummary } from './run-views.ts';

/** One function changes runs and resends outbox entries: it has the permissions for both. */
export const handleControl = router<RunChanger, typeof controlRoutes & typeof outboxRoutes>(
  { ...controlRoutes, ...outboxRoutes },
  {
    cancelRun: command((body: { reason?: string }) => ({ kind: 'cancel', ...body })),
    pauseRun: command((body: { reason?: string }) => ({ kind: 'pause', ...body })),
    resumeRun: command(() => ({ kind: 'resume' })),
    retryRun: command((body: { step?: string }) => ({ kind: 'retry', ...body })),
    rollBackRun: command((body: { reason?: string }) => ({ kind: 'rollback', ...body })),
    signalRun: command((body: { event: string; payload: unknown; id?: string }) => ({ kind: 'signal', ...body })),
    ...outboxHandlers,
  },
);

function command<Body>(commandOf: (body: Body) => Command) {
  return async (
    changer: RunChanger,
    { caller, params, body }: { caller: Caller; params: { id: string }; body: Body },
  ): Promise<{ status: 200; body: RunSummary }> => {
    const target = { tenant: caller.tenant, runId: params.id };
    const { run } = await controlRun(changer, target, commandOf(body), caller.person);
    return { status: 200, body: runSummary(run) };
  };
}

import { call } from '../data/api.ts';
import type { RunDetail } from '../data/run.ts';

export type RunAction = RunDetail['actions'][number];

/** Buttons that name their effect. */
export const LABELS: Record<RunAction['action'], string> = {
  retry: 'Retry the failed step',
  resume: 'Resume the run',
  signal: 'Send the signal',
  pause: 'Pause the run',
  cancel: 'Cancel the run',
  rollback: 'Undo its writes',
  resolve: 'Resolve the run',
  rerun: 'Run it again',
  replay: 'Replay from the failed step',
  assign: 'Assign it to me',
  release: 'Release it',
};
/** Sends an action. Returns the id of the run that it started, if it did. */
export async function performAction(
  id: string,
  action: RunAction['action'],
  body: object,
): Promise<string | undefined> {
  const params = { id };
  switch (action) {
    case 'rerun':
      return (await call('POST /api/v1/runs/{id}/rerun', { params, body })).runId;
    case 'replay':
      return (await call('POST /api/v1/runs/{id}/replay', { params, body })).runId;
    case 'rollback':
      return (await call('POST /api/v1/runs/{id}/rollback', { params, body })).rolledBackBy ?? undefined;
    default:
      await call(`POST /api/v1/runs/{id}/${action}`, { params, body: body as never });
      return undefined;
  }
}

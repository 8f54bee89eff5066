import { type CommitLiveEvent, eventsOf } from '../../live/live-event.ts';
import type { Commit } from '../../run/commit.ts';
import type { CommitEvent } from '../../run/events/events.ts';
import type { Step } from '../../run/step.ts';
import type { ExecutionEventEnvelope } from '../contract/runs/executions.ts';
import { EXECUTION_EVENTS, type ExecutionEvent } from '../runs/execution-vocabulary.ts';

/** The events of the live feed that source 001 has a name for, with the step and the worker that each is about. */
export function executionEvents(
  runId: string,
  commits: readonly Commit[],
  steps: readonly Step[],
): ExecutionEventEnvelope[] {
  return commits
    .flatMap((commit) => eventsOf(runId, commit))
    .filter(isNamed)
    .map(({ id, event, session_id, timestamp, payload: { type: _type, ...payload } }) => {
      const step = stepOf(payload, steps);
      return {
        ...{ event, event_id: id, session_id, step_number: step ? step.index + 1 : null, timestamp, payload },
        meta: {
          worker_id: step?.assigned?.agentId ?? null,
          environment: step?.governed?.request.action.environment ?? null,
          sandbox_profile: step?.assigned?.profile ?? null,
        },
      };
    });
}

const isNamed = (event: CommitLiveEvent): event is CommitLiveEvent & { event: ExecutionEvent } =>
  EXECUTION_EVENTS.some((name) => name === event.event);

const stepOf = (payload: Omit<CommitEvent, 'type'>, steps: readonly Step[]): Step | undefined =>
  'step' in payload ? steps.find(({ id }) => id === payload.step) : undefined;

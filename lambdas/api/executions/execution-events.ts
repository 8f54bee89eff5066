import type { Commit } from '../../run/commit.ts';
import type { CommitEvent } from '../../run/events/events.ts';
import type { Step } from '../../run/step.ts';
import type { ExecutionEventEnvelope } from '../contract/executions.ts';
import { executionEventsOf } from '../runs/execution-vocabulary.ts';

/** The events of commits in the envelope of source 001, 3.2. Events that it has no name for are left out. */
export function executionEvents(
  runId: string,
  commits: readonly Commit[],
  steps: readonly Step[],
): ExecutionEventEnvelope[] {
  return commits.flatMap(({ seq, at, events }) =>
    events
      .flatMap((event) => executionEventsOf(event).map((name) => ({ name, event })))
      .map(({ name, event }, place) => {
        const step = stepOf(event, steps);
        const action = step?.governed?.request.action;
        const { type: _type, ...payload } = event;
        return {
          event: name,
          event_id: `${seq}.${place + 1}`,
          session_id: runId,
          step_number: step ? step.index + 1 : null,
          timestamp: at,
          payload,
          meta: {
            worker_id: step?.assigned?.agentId ?? null,
            environment: action?.environment ?? null,
            sandbox_profile: step?.assigned?.profile ?? null,
          },
        };
      }),
  );
}

const stepOf = (event: CommitEvent, steps: readonly Step[]): Step | undefined =>
  'step' in event ? steps.find(({ id }) => id === event.step) : undefined;

import type { CommitEvent } from './events/events.ts';
import type { Run } from './run.ts';
import type { SlackThread } from './run-terms.ts';

/** The signal of a message that a person writes in the thread of a run. */
export const THREAD_SIGNAL = 'slack.message';

/** The thread that a run belongs to. */
export const threadOf = ({ notify = [] }: Pick<Run, 'notify'>): SlackThread | undefined =>
  notify.find((place) => place.type === 'slack_thread');

/** What the thread of a run shows of a commit. Most commits show nothing: people want to know when they are needed. */
export function progressOf(events: readonly CommitEvent[]): string | undefined {
  for (const event of events.toReversed()) {
    if (event.type === 'approval.requested') return 'Waits for an approval.';
    if (event.type === 'step.waiting' && event.signal === THREAD_SIGNAL) return 'Waits for an answer in this thread.';
    if (event.type === 'run.status_changed' && event.to === 'rolling_back') return 'Undoes its writes.';
  }
  const started = events.some((event) => event.type === 'run.status_changed' && event.from === 'ready');
  return started ? 'Works on it.' : undefined;
}

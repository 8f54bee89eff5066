import { hashOf } from '../run/canonical-json.ts';
import { isTerminal, type TerminalRun } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import type { NotifiedPlace } from '../run/run-terms.ts';
import type { NoticeOf } from './notice-store.ts';
import { type Postable, type Poster, postOnce } from './post-once.ts';

/** Messages about the end of runs. */
export interface RunEndMessages {
  ofEnd(run: TerminalRun, place: NotifiedPlace, notice: NoticeOf): Postable;
}

export interface RunEndNotifier extends Poster {
  runs: Pick<RunStore, 'someRuns' | 'completeOutboxEntry'>;
  messages: RunEndMessages;
}

/** The notice of a place about the end of a run. */
export const endNoticeOf = ({ tenant, runId }: { tenant: string; runId: string }, place: NotifiedPlace): NoticeOf => ({
  tenant,
  runId,
  id: `end.${hashOf(place)}`,
});

/**
 * Notifies every place that the automation or a subscription names of the end of a run. The outbox entry stays until all
 * are notified, so the sweeper tries the others again.
 */
export async function notifyRunEnd(
  notifier: RunEndNotifier,
  { entryId, tenant, runId }: { entryId: string; tenant: string; runId: string },
): Promise<void> {
  const [run] = await notifier.runs.someRuns(tenant, [runId]);
  if (!run || !isTerminal(run)) {
    notifier.log.warn('asked to notify of a run that is not there or has not ended', { tenant, runId });
    return run ? undefined : notifier.runs.completeOutboxEntry(entryId);
  }
  const places = new Map((run.notify ?? []).map((place) => [endNoticeOf(run, place).id, place]));
  const results = await Promise.allSettled(
    [...places.values()].map((place) => {
      const notice = endNoticeOf(run, place);
      return postOnce(notifier, notice, notifier.messages.ofEnd(run, place, notice));
    }),
  );
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  const done = results.every((result) => result.status === 'fulfilled' && result.value);
  if (done) await notifier.runs.completeOutboxEntry(entryId);
}

import { progressOf, threadOf } from '../run/progress.ts';
import { isTerminal, type Run } from '../run/run.ts';
import type { RunStore } from '../run/run-store.ts';
import type { SlackThread } from '../run/run-terms.ts';
import type { NoticeOf } from './notice-store.ts';
import { type Postable, type Poster, postOnce } from './post-once.ts';

export interface ProgressMessages {
  ofProgress(run: Run, thread: SlackThread, notice: NoticeOf, text: string): Postable;
}

export interface ProgressNotifier extends Poster {
  runs: Pick<RunStore, 'someRuns' | 'listCommits' | 'completeOutboxEntry'>;
  messages: ProgressMessages;
}

/** Shows the progress of a run in its thread, once. After the end of the run, earlier progress is not posted. */
export async function postProgress(
  notifier: ProgressNotifier,
  { entryId, tenant, runId, seq }: { entryId: string; tenant: string; runId: string; seq: number },
): Promise<void> {
  const { runs } = notifier;
  const [run] = await runs.someRuns(tenant, [runId]);
  const thread = run && threadOf(run);
  if (!run || isTerminal(run) || !thread) return runs.completeOutboxEntry(entryId);
  const [commit] = await runs.listCommits(tenant, runId, { after: seq - 1, limit: 1 });
  const text = commit && progressOf(commit.events);
  const notice = { tenant, runId, id: `progress.${seq}` };
  const message = () => notifier.messages.ofProgress(run, thread, notice, text ?? '');
  if (text === undefined || (await postOnce(notifier, notice, message()))) await runs.completeOutboxEntry(entryId);
}

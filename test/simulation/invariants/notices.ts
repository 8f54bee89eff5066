import { markOf } from '../../../lambdas/connectors/connector.ts';
import type { Notice, NoticeOf } from '../../../lambdas/notify/notice-store.ts';
import { endNoticeOf } from '../../../lambdas/notify/notify-run-end.ts';
import type { RunChange } from '../../../lambdas/run/commit.ts';
import { threadOf } from '../../../lambdas/run/progress.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import type { NotifiedPlace, SlackThread } from '../../../lambdas/run/run-terms.ts';
import { messageKey, type ThreadMessage } from '../../../lambdas/slack/thread/thread-runs.ts';
import type { MemoryRunStore } from '../../fakes/memory/memory-run-store.ts';
import type { TargetRequest } from '../environment/simulated-targets.ts';
import type { Situations } from '../situations.ts';
import { TERMINAL } from './lifecycle-table.ts';
import type { Report } from './report.ts';

const ONCE = 'each destination gets each notice once';
const AFTER_ITS_EVENT = 'a notice follows the event that it is about';

/** Messages about runs are posted once and in time, and each message of a thread has one effect. */
export class NoticeInvariants {
  readonly #report: Report;
  readonly #store: MemoryRunStore;
  readonly #situations: Situations;
  readonly #clocksAreClose: boolean;
  /** By their mark. */
  readonly #notices = new Map<string, NoticeOf>();
  readonly #posted = new Map<string, number>();
  /** Messages of people, by their key, and what they have done. */
  readonly #written = new Map<string, ThreadMessage>();
  readonly #effects = new Map<string, string>();

  constructor(report: Report, store: MemoryRunStore, known: { clocksAreClose: boolean; situations: Situations }) {
    this.#report = report;
    this.#store = store;
    this.#situations = known.situations;
    this.#clocksAreClose = known.clocksAreClose;
  }

  /** A person has written this message in Slack. */
  written(message: ThreadMessage): void {
    this.#written.set(`${message.tenant} ${messageKey(message)}`, message);
  }

  saved(read: Notice, saved: Notice | undefined): void {
    if (!saved) this.#situations.record('another invocation has changed the notice first');
    this.#notices.set(markOfNotice(read), read);
  }

  sent({ by, method, url }: TargetRequest): void {
    if (by.hasReturned) this.#report('an invocation that has returned sends nothing', `${by.id} ${url.pathname}`);
    if (method === 'GET' && /conversations\.(?:history|replies)$/.test(url.pathname)) {
      this.#situations.record('an invocation searches for the notice of another');
    }
  }

  handled({ by, url, body }: TargetRequest): void {
    if (!url.pathname.endsWith('/chat.postMessage')) return;
    const { metadata, channel, thread_ts } = body as {
      metadata: { event_payload: { mark: string } };
      channel: string;
      thread_ts?: string;
    };
    const { mark } = metadata.event_payload;
    const notice = this.#notices.get(mark);
    if (!notice) {
      this.#report('a notice is posted by its claim', `${by.id} posted ${mark}`);
      return;
    }
    const times = (this.#posted.get(mark) ?? 0) + 1;
    this.#posted.set(mark, times);
    if (times > 1 && this.#clocksAreClose) this.#report(ONCE, `${notice.runId} ${notice.id}: ${times} times`);
    const place = this.#placeOf(notice);
    if (!place) this.#report(AFTER_ITS_EVENT, `${notice.runId} ${notice.id}`);
    const isThere =
      !place ||
      place.type === 'slack_dm_user' ||
      (place.channel === channel && (place.type === 'slack_channel' || place.threadTs === thread_ts));
    if (!isThere) this.#report('a notice goes to its destination', `${notice.id} went to ${channel} ${thread_ts}`);
  }

  /** Where the notice belongs; undefined if nothing has happened that it could be about. */
  #placeOf({ tenant, runId, id }: NoticeOf): NotifiedPlace | undefined {
    const run = this.#store.inside.run(tenant, runId);
    const [kind, rest = ''] = id.split(/\.(.*)/s);
    if (kind === 'end') return run && TERMINAL.has(run.status) ? placeOfEnd(run, id) : undefined;
    if (kind === 'progress') {
      return run && this.#store.inside.commit(tenant, runId, Number(rest)) ? threadOf(run) : undefined;
    }
    const asked = [...this.#written.values()].find((message) => message.tenant === tenant && message.ts === rest);
    return asked && { type: 'slack_thread', channel: asked.channel, threadTs: asked.threadTs };
  }

  created(runs: readonly Run[]): void {
    for (const run of runs) {
      const thread = threadOf(run);
      if (!thread || run.request?.rerunOf !== undefined || run.request?.replay) continue;
      this.#situations.record('a message in Slack starts a run');
      this.#hasEffect(run, run.trigger.key, run.runId);
      if (!this.#written.get(`${run.tenant} ${run.trigger.key}`)?.addressed) {
        this.#report('only messages to the app start runs', `${run.runId} by ${run.trigger.key}`);
      }
      const open = [...this.#store.inside.runs()].filter(
        (other) => other.tenant === run.tenant && isIn(other, thread) && !TERMINAL.has(other.status),
      );
      if (open.length > 1) this.#report('a thread has one open run', open.map(({ runId }) => runId).join(' and '));
    }
  }

  committed({ run, commit }: RunChange): void {
    for (const event of commit.events) {
      if (event.type !== 'step.signaled' || !event.eventId.startsWith('slack:')) continue;
      this.#situations.record('a message in Slack wakes a run');
      this.#hasEffect(run, event.eventId, `${run.runId}/${event.step}`);
    }
  }

  #hasEffect({ tenant }: Run, key: string, effect: string): void {
    const of = `${tenant} ${key}`;
    const before = this.#effects.get(of);
    if (before !== undefined) this.#report('a message in a thread has one effect', `${key}: ${before}, ${effect}`);
    this.#effects.set(of, effect);
  }

  /** No work is left: every destination was notified of the end. */
  checkFinal(): void {
    for (const run of this.#store.inside.runs()) {
      for (const place of run.notify ?? []) {
        const times = this.#posted.get(markOfNotice(endNoticeOf(run, place))) ?? 0;
        if (times === 0) this.#report('every destination is notified of the end', `${run.runId} ${place.type}`);
      }
    }
  }
}

const isIn = (run: Run, { channel, threadTs }: SlackThread): boolean => {
  const thread = threadOf(run);
  return thread?.channel === channel && thread.threadTs === threadTs;
};

const placeOfEnd = (run: Run, id: string) => run.notify?.find((place) => endNoticeOf(run, place).id === id);

const markOfNotice = ({ tenant, runId, id }: NoticeOf) => markOf(tenant, `notice ${id} of ${runId}`);

import { threadOf } from '../../../lambdas/run/progress.ts';
import type { Run } from '../../../lambdas/run/run.ts';
import { isTerminal } from '../../../lambdas/run/run.ts';
import type { ThreadMessage } from '../../../lambdas/slack/thread/thread-runs.ts';
import type { Functions } from '../environment/functions.ts';
import { SeededRandom } from '../environment/seeded-random.ts';
import type { VirtualTime } from '../environment/virtual-time.ts';
import type { NoticeInvariants } from '../invariants/notices.ts';

export interface ThreadBehavior {
  perTenant: number;
  runsPerThread: number;
  /** People also write to the app while its run works, and strangers write. */
  disturbs: boolean;
}

export const THREAD_CHANNEL = '#talk';
const CHANNEL = 'C0TALK';
const TEAM = 'T1';
const WRITERS = ['UANA', 'UMAX'] as const;
/** Slack sends an event again, three times, if the response is an error or takes longer than three seconds. */
const SENT_AGAIN_AFTER_MS = [1_000, 60_000, 300_000] as const;
const ANSWERS_AFTER_MS = [500, 30_000] as const;
const MESSAGES_MAX = 10;

/** People who write to the app in threads, and Slack, which repeats events. They have their own random numbers. */
export class ThreadWriters {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  readonly #functions: () => Functions;
  readonly #invariants: NoticeInvariants;
  readonly #behavior: ThreadBehavior;
  readonly #answered = new Set<string>();
  readonly #ended = new Map<string, number>();
  #messages = 0;

  constructor(
    ports: { time: VirtualTime; functions: () => Functions; invariants: NoticeInvariants },
    seed: number,
    behavior: ThreadBehavior,
  ) {
    this.#time = ports.time;
    this.#functions = ports.functions;
    this.#invariants = ports.invariants;
    this.#random = new SeededRandom(seed * 37 + 11);
    this.#behavior = behavior;
  }

  start(tenants: readonly string[]): void {
    for (const tenant of tenants) {
      for (let each = 0; each < this.#behavior.perTenant; each += 1) {
        this.#time.after(this.#random.between(0, 60_000), () => {
          const { threadTs } = this.#write(tenant, undefined, true);
          // Somebody else writes in the new thread at once.
          this.#write(tenant, threadTs, this.#behavior.disturbs && this.#random.chance(0.5));
        });
      }
    }
  }

  /** A run has changed: people answer it, or write again after its end. */
  changed(run: Run): void {
    const thread = threadOf(run);
    if (!thread) return;
    const { tenant, runId, status, seq } = run;
    const { disturbs, runsPerThread } = this.#behavior;
    if (status === 'waiting_external' && !this.#answered.has(`${runId} ${seq}`)) {
      this.#answered.add(`${runId} ${seq}`);
      this.#later(tenant, thread.threadTs, false);
      if (disturbs && this.#random.chance(0.3)) this.#later(tenant, thread.threadTs, this.#random.chance(0.3));
    }
    const key = `${tenant} ${thread.threadTs} ${runId}`;
    if (!isTerminal(run) || this.#ended.has(key)) return;
    const ended = [...this.#ended.keys()].filter((other) => other.startsWith(`${tenant} ${thread.threadTs} `));
    this.#ended.set(key, ended.length + 1);
    // Thanks are for people. Only what is addressed to the app starts the next run.
    this.#later(tenant, thread.threadTs, false);
    if (ended.length + 1 < runsPerThread) this.#later(tenant, thread.threadTs, true);
  }

  #later(tenant: string, threadTs: string, addressed: boolean): void {
    this.#time.after(this.#random.between(...ANSWERS_AFTER_MS), () => this.#write(tenant, threadTs, addressed));
  }

  #write(tenant: string, thread: string | undefined, addressed: boolean): ThreadMessage {
    this.#messages += 1;
    const ts = `1700000000.${String(this.#messages).padStart(6, '0')}`;
    const isStranger = this.#behavior.disturbs && thread !== undefined && this.#random.chance(0.1);
    const user = isStranger ? 'UNOBODY' : this.#random.pick(WRITERS);
    const message: ThreadMessage = {
      ...{ tenant, team: TEAM, channel: CHANNEL, ts, threadTs: thread ?? ts, addressed },
      ...{ text: `message ${this.#messages}`, identity: `slack:${TEAM}/${user}` },
    };
    this.#invariants.written(message);
    if (this.#messages > MESSAGES_MAX * this.#behavior.perTenant * this.#behavior.runsPerThread) return message;
    this.#send(message, 0);
    // As a mention and as a message.
    if (addressed) this.#time.after(this.#random.between(0, 300), () => this.#send(message, 0));
    return message;
  }

  #send(message: ThreadMessage, attempt: number): void {
    this.#functions().receiveMessage(message, (accepted) => {
      const waitMs = SENT_AGAIN_AFTER_MS[attempt];
      // The response may be lost, or too late.
      const again = !accepted || this.#random.chance(0.2);
      if (again && waitMs !== undefined) this.#time.after(waitMs, () => this.#send(message, attempt + 1));
    });
  }
}

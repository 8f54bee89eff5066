import type { RunStarter } from '../../intake/request-run.ts';
import { startableAutomation } from '../../intake/start-automation.ts';
import type { NoticeOf } from '../../notify/notice-store.ts';
import { type Postable, type Poster, postOnce } from '../../notify/post-once.ts';
import type { Person } from '../../people/people.ts';
import { may } from '../../people/rights.ts';
import type { Automation } from '../../pipeline/automation.ts';
import type { Definitions } from '../../pipeline/definitions.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import { CountersignError } from '../../run/errors.ts';
import { THREAD_SIGNAL } from '../../run/progress.ts';
import { isTerminal } from '../../run/run.ts';
import type { LoadedRun, RunStore } from '../../run/run-store.ts';
import type { SlackThread } from '../../run/run-terms.ts';
import { controlRun, RunChanged } from '../../run-changes/control/control-run.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import { type Message, sentence } from '../block-kit.ts';
import { findSlackPerson, unknownUser } from '../request/slack-user.ts';
import {
  messageKey,
  RUNS_PER_THREAD_MAX,
  type RunOfThread,
  runsOfThread,
  startInThread,
  type ThreadMessage,
} from './thread-runs.ts';

const COMMITS_PER_READ = 100;
const CLOCKS_DIFFER_MS = 60_000;

export interface Threads extends RunChanger, Poster, Pick<RunStarter, 'queue'> {
  runs: RunStore;
  definitions: RunChanger['definitions'] & Pick<Definitions, 'automations' | 'people'>;
  messages: { to(place: SlackThread, notice: NoticeOf, message: () => Message): Postable };
}

/** `again`: nothing is decided. Slack sends the event again if the response says so. */
export type Received = 'started' | 'signaled' | 'replied' | 'ignored' | 'again';

/**
 * One thread is one conversation: a message to the app starts a run of the automation of the workspace. Further messages
 * of the thread wake this run if it waits for one, until it has ended; then a message to the app starts the next run. What
 * people write to each other meanwhile is ignored. Slack repeats events; a message has an effect once.
 */
export async function receiveMessage(threads: Threads, message: ThreadMessage, tries = 3): Promise<Received> {
  const { tenant, addressed } = message;
  const runs = await runsOfThread(threads, message);
  // It may arrive as a message and as a mention. Read after the runs, none of which it has started then.
  if (await threads.runs.idempotencyRecord(tenant, messageKey(message))) return 'ignored';
  const last = runs.at(-1);
  const loaded = last && (await threads.runs.load(tenant, last.runId));
  if (!addressed && !(loaded && waits(loaded))) return 'ignored';
  if (await hasWoken(threads, message, runs)) return 'ignored';
  const person = await findSlackPerson(threads, tenant, message.identity);
  if (!person) return reply(threads, message, unknownUser(message.identity));
  const open = loaded && !isTerminal(loaded.run) ? loaded : undefined;
  const done = open ? await signal(threads, message, person, open) : await start(threads, message, person, runs);
  if (done !== 'lost') return done;
  return tries > 1 ? receiveMessage(threads, message, tries - 1) : 'again';
}

const waits = ({ run, steps }: LoadedRun): boolean =>
  !isTerminal(run) &&
  steps.some(
    (step) =>
      step.status === 'waiting_external' && step.awaits.kind === 'signal' && step.awaits.event === THREAD_SIGNAL,
  );

/** Whether it has woken a run of the thread, which may have ended since. A run that ended before the message was not woken. */
async function hasWoken(threads: Threads, message: ThreadMessage, runs: readonly RunOfThread[]): Promise<boolean> {
  const writtenMs = Number(message.ts) * 1000;
  for (const { runId, startedAt } of runs.toReversed()) {
    if (await hasSignal(threads, message, runId)) return true;
    if (Date.parse(startedAt) < writtenMs - CLOCKS_DIFFER_MS) return false;
  }
  return false;
}

/** The commits of a run say which messages have woken it. */
async function hasSignal({ runs }: Threads, message: ThreadMessage, runId: string): Promise<boolean> {
  const eventId = messageKey(message);
  for (let after = 0; ; after += COMMITS_PER_READ) {
    const commits = await runs.listCommits(message.tenant, runId, { after, limit: COMMITS_PER_READ });
    const events = commits.flatMap((commit) => commit.events);
    if (events.some((event) => event.type === 'step.signaled' && event.eventId === eventId)) return true;
    if (commits.length < COMMITS_PER_READ) return false;
  }
}

/** Wakes the run, if it waits for a message. */
async function signal(
  threads: Threads,
  message: ThreadMessage,
  person: Person,
  loaded: LoadedRun,
): Promise<Received | 'lost'> {
  const { tenant, runId, seq } = loaded.run;
  if (!waits(loaded)) {
    return reply(threads, message, 'The run of this thread is still running and does not wait for a message.', runId);
  }
  if (!may(person.role, 'runs:control')) {
    return reply(threads, message, 'Only operators, admins and owners may send messages to a run.', runId);
  }
  const payload = { text: message.text, person: person.id, ts: message.ts };
  const command = { kind: 'signal' as const, event: THREAD_SIGNAL, payload, id: messageKey(message) };
  try {
    // Nothing has changed since the commits were read, so the message wakes at most one step.
    await controlRun(threads, { tenant, runId }, command, person.id, { expectedSeq: seq });
    return 'signaled';
  } catch (error) {
    if (error instanceof RunChanged) return 'lost';
    if (!(error instanceof CountersignError)) throw error;
    if (error.code === 'RUN_TERMINAL_STATE') return 'lost';
    if (error.code === 'CAP_EXCEEDED')
      return reply(threads, message, `The run did not continue: ${error.message}`, runId);
    throw error;
  }
}

async function start(
  threads: Threads,
  message: ThreadMessage,
  person: Person,
  runs: readonly RunOfThread[],
): Promise<Received | 'lost'> {
  const { slackAutomation } = await threads.definitions.settings(message.tenant);
  if (slackAutomation === undefined) {
    return reply(
      threads,
      message,
      'No automation is set for Slack. An admin can set one: countersign settings set slackAutomation=NAME',
    );
  }
  if (!may(person.role, 'runs:start')) {
    return reply(threads, message, 'Only operators, admins and owners may start runs.');
  }
  if (runs.length >= RUNS_PER_THREAD_MAX) {
    return reply(threads, message, `This thread has had ${runs.length} runs. Write to the app in a new thread.`);
  }
  let automation: Automation;
  try {
    automation = await startableAutomation(threads, message.tenant, slackAutomation);
  } catch (error) {
    if (!(error instanceof CountersignError)) throw error;
    return reply(threads, message, error.message);
  }
  return startInThread(threads, message, { person, automation, last: runs.at(-1)?.runId });
}

/** Once for each message. If Slack does not accept it now, Slack's next attempt to send the event posts it. */
async function reply(threads: Threads, message: ThreadMessage, text: string, runId?: string): Promise<Received> {
  const { tenant, team, channel, threadTs, ts } = message;
  // A message that belongs to no run has rows of its own.
  const of = runId ?? `slack_${sha256Hex(`${team}/${channel}/${threadTs}`).slice(0, 32)}`;
  const notice = { tenant, runId: of, id: `reply.${ts}` };
  const place: SlackThread = { type: 'slack_thread', channel, threadTs };
  const posted = await postOnce(
    threads,
    notice,
    threads.messages.to(place, notice, () => sentence(text)),
  );
  return posted ? 'replied' : 'again';
}

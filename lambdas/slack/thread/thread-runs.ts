import { isoNow } from '../../entry/ports.ts';
import { type RunStarter, wake } from '../../intake/request-run.ts';
import { shrinkUntilStored } from '../../intake/stored-payload.ts';
import type { Person } from '../../people/people.ts';
import type { Automation } from '../../pipeline/automation.ts';
import { hashOf } from '../../run/canonical-json.ts';
import { deliveryKey, IDEMPOTENCY_RETENTION_MS, type IdempotencyRecord } from '../../run/idempotency.ts';
import { later } from '../../run/lease.ts';
import { THREAD_SIGNAL } from '../../run/progress.ts';
import type { Trigger } from '../../run/run.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { SlackThread } from '../../run/run-terms.ts';
import { newRun } from '../../run-changes/new-run.ts';

/** Finding the last run of a thread reads the records of all its runs, and Slack waits for three seconds. */
export const RUNS_PER_THREAD_MAX = 100;
const TITLE_MAX_CHARACTERS = 200;
/** A thread whose last run started this long ago is forgotten. */
const THREAD_RETAINED_MS = 90 * 24 * 60 * 60_000;

/** A message of a person, from a signed event. Its text is data. */
export interface ThreadMessage {
  tenant: string;
  team: string;
  channel: string;
  ts: string;
  threadTs: string;
  text: string;
  identity: string;
  /** It mentions the app, or is a direct message to it. */
  addressed: boolean;
}

type ThreadStarter = RunStarter & { runs: Pick<RunStore, 'ingest' | 'idempotencyRecord'> };

export const messageKey = ({ team, channel, ts }: ThreadMessage) => deliveryKey.slackMessage({ team, channel, ts });

const runKey = ({ team, channel, threadTs }: ThreadMessage, after: string | undefined) =>
  deliveryKey.slackThread({ team, channel, threadTs, after: after ?? 'first' });

export interface RunOfThread {
  runId: string;
  startedAt: string;
}

/** The runs of a thread, oldest first. The record of each run names the one before it, which has ended. */
export async function runsOfThread({ runs, clock }: ThreadStarter, message: ThreadMessage): Promise<RunOfThread[]> {
  const found: RunOfThread[] = [];
  while (found.length < RUNS_PER_THREAD_MAX) {
    const record = await runs.idempotencyRecord(message.tenant, runKey(message, found.at(-1)?.runId));
    if (!record || record.expiresAt <= isoNow(clock)) break;
    found.push(...record.runIds.map((runId) => ({ runId, startedAt: record.createdAt })));
  }
  return found;
}

/**
 * Starts the next run of a thread, with its record in one transaction: so two messages at once start one run. `lost`:
 * another message has started the next run.
 */
export async function startInThread(
  threads: ThreadStarter,
  message: ThreadMessage,
  { person, automation, last }: { person: Person; automation: Automation; last: string | undefined },
): Promise<'started' | 'ignored' | 'lost'> {
  const { tenant, channel, threadTs } = message;
  const trigger = triggerOf(message, person, isoNow(threads.clock));
  const runId = threads.ids.next('run');
  const key = messageKey(message);
  const at = trigger.receivedAt;
  const record = (recordKey: string, forMs: number): IdempotencyRecord => ({
    ...{ tenant, key: recordKey, source: trigger.source, requestHash: hashOf(message), runIds: [runId] },
    ...{ automations: [automation.name], createdAt: at, expiresAt: later(at, forMs) },
  });
  const records = [record(key, IDEMPOTENCY_RETENTION_MS.manual), record(runKey(message, last), THREAD_RETAINED_MS)];
  const thread: SlackThread = { type: 'slack_thread', channel, threadTs };
  const request = { actor: person.id };
  const subject = `slack:${message.team}:${channel}:${threadTs}`;
  const result = await shrinkUntilStored(trigger, (stored) => {
    const made = newRun({ runId, tenant, automation, key, subject, request, thread, makers: [person.id], ...stored });
    return threads.runs.ingest({ records, trigger: stored.trigger, runs: [made], at });
  });
  if (result.outcome !== 'created') {
    return result.outcome === 'duplicate' && result.record.key === key ? 'ignored' : 'lost';
  }
  await wake(threads, tenant, runId);
  return 'started';
}

/** People write the text, so nothing in it is an instruction; expressions of the workflow see it as `trigger.text`. */
function triggerOf({ channel, threadTs, ts, text }: ThreadMessage, { id, name }: Person, receivedAt: string): Trigger {
  const [line = ''] = text.split('\n');
  const title = line.slice(0, TITLE_MAX_CHARACTERS).toWellFormed() || `Message of ${name}`;
  return {
    source: 'manual',
    event: THREAD_SIGNAL,
    fields: { title, actor: id, text, channel, threadTs },
    payload: { text, channel, threadTs, ts, person: id },
    makers: [id],
    receivedAt,
  };
}

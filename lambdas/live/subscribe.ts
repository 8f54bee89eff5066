import type { OutputStore } from '../agents/output-store.ts';
import { type Clock, isoNow } from '../entry/ports.ts';
import type { RunStore } from '../run/run-store.ts';
import { type LiveEvent, parseEventId } from './live-event.ts';
import { EVERYTHING, type LiveStore, type PersonConnection, type Sockets, type Subscription } from './live-store.ts';
import { messagesOf, type ServerMessage, type SubscribeMessage } from './messages.ts';
import { missedEvents } from './replay.ts';

export interface SubscribePorts {
  live: Pick<LiveStore, 'connection' | 'subscribe' | 'close'>;
  runs: Pick<RunStore, 'someRuns' | 'listCommits'>;
  output: Pick<OutputStore, 'chunks' | 'head'>;
  sockets: Sockets;
  clock: Clock;
  isPerson(tenant: string, person: string): Promise<boolean>;
}

const SUBSCRIPTIONS_MAX = 20;
const SUBSCRIBES_PER_MINUTE_MAX = 60;
const MINUTE_MS = 60_000;
/** Two messages of one client at the same moment. */
const ATTEMPTS_MAX = 4;
const COMMITS_READ_MAX = 100;

type Refusal = Extract<ServerMessage, { type: 'error' }>;
const refusal = (code: Refusal['code'], message: string): Refusal => ({ type: 'error', code, message });

/**
 * Subscribes a connection to a run of its own tenant or to the feed of its tenant, then sends what it missed. The
 * subscription is stored before the commits are read, so nothing is lost between the two.
 */
export async function subscribe(ports: SubscribePorts, connectionId: string, message: SubscribeMessage): Promise<void> {
  const reply = await subscribed(ports, connectionId, message);
  for (const each of reply) {
    if ((await ports.sockets.send(connectionId, JSON.stringify(each))) === 'gone')
      return ports.live.close(connectionId);
  }
}

async function subscribed(
  ports: SubscribePorts,
  connectionId: string,
  message: SubscribeMessage,
): Promise<ServerMessage[]> {
  const { run_id: runId, last_event_id: lastEventIds } = message;
  const connection = await add(ports, connectionId, runId === undefined ? EVERYTHING : { runId });
  if ('type' in connection) return [connection];
  if (runId === undefined) return [{ type: 'subscribed' }];
  const { tenant } = connection;
  const known = lastEventIds.map((id) => parseEventId(id));
  if (known.some((id) => id?.runId !== runId)) {
    return [refusal('BAD_REQUEST', `last_event_id must be the id of an event of ${runId}`)];
  }
  const missed: LiveEvent[] = [];
  for (const id of known) if (id) missed.push(...(await missedEvents(ports, tenant, id)));
  return [...messagesOf(missed), { type: 'subscribed', run_id: runId, commit: await lastCommit(ports, tenant, runId) }];
}

/** The row of a run may be some commits old. */
async function lastCommit({ runs }: SubscribePorts, tenant: string, runId: string): Promise<number> {
  const [run] = await runs.someRuns(tenant, [runId]);
  let last = run?.seq ?? 0;
  for (let more = true; more; ) {
    const commits = await runs.listCommits(tenant, runId, { after: last, limit: COMMITS_READ_MAX });
    last = commits.at(-1)?.seq ?? last;
    more = commits.length === COMMITS_READ_MAX;
  }
  return last;
}

async function add(
  { live, runs, clock, isPerson }: SubscribePorts,
  connectionId: string,
  subscription: Subscription,
): Promise<PersonConnection | Refusal> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const read = await live.connection(connectionId);
    if (!read || 'agentId' in read) return refusal('FORBIDDEN', 'the connection has ended; connect with a new ticket');
    const counted = { ...read, subscribed: countSubscribe(read, clock), revision: read.revision + 1 };
    if (counted.subscribed.count > SUBSCRIBES_PER_MINUTE_MAX) {
      return refusal('RATE_LIMITED', `subscribe at most ${SUBSCRIBES_PER_MINUTE_MAX} times a minute; wait a minute`);
    }
    if (!read.machine && !(await isPerson(read.tenant, read.person))) {
      await live.close(connectionId);
      return refusal('FORBIDDEN', `${read.person} is no longer a person of this tenant`);
    }
    // The tenant is the one of the ticket, so a run of another tenant does not exist here.
    if (subscription !== EVERYTHING && (await runs.someRuns(read.tenant, [subscription.runId])).length === 0) {
      return refusal('NOT_FOUND', `there is no run ${subscription.runId}`);
    }
    const others = read.subscriptions.filter((each) => !isSame(each, subscription));
    if (others.length >= SUBSCRIPTIONS_MAX) {
      return refusal('RATE_LIMITED', `a connection has at most ${SUBSCRIPTIONS_MAX} subscriptions; open another one`);
    }
    const connection = { ...counted, subscriptions: [...others, subscription] };
    if (await live.subscribe(read, connection, subscription)) return connection;
  }
  return refusal('RATE_LIMITED', 'too many messages of this connection at once; wait for each response');
}

function countSubscribe({ subscribed }: PersonConnection, clock: Clock): PersonConnection['subscribed'] {
  const isSameMinute = clock.now() - Date.parse(subscribed.since) < MINUTE_MS;
  return isSameMinute ? { ...subscribed, count: subscribed.count + 1 } : { since: isoNow(clock), count: 1 };
}

const isSame = (a: Subscription, b: Subscription): boolean =>
  a === EVERYTHING || b === EVERYTHING ? a === b : a.runId === b.runId;

import type { StoredChunk } from '../agents/output.ts';
import type { Log } from '../entry/ports.ts';
import type { Commit } from '../run/commit.ts';
import { eventsOf, isOutput, type LiveEvent, outputEventOf } from './live-event.ts';
import { EVERYTHING, type LiveStore, type Sockets, type Watcher } from './live-store.ts';
import { messagesOf } from './messages.ts';

/** A new row of the table: a commit, or a chunk of output. */
export type NewRow = { tenant: string; runId: string; sequenceNumber: string } & (
  | { kind: 'commit'; readonly commit: Commit }
  | { kind: 'output'; stepIndex: number; leaseVersion: number; readonly chunk: StoredChunk }
);

export interface FanOutPorts {
  live: Pick<LiveStore, 'watchers' | 'close'>;
  sockets: Sockets;
  isPerson(tenant: string, person: string): Promise<boolean>;
  log: Log;
}

/** Posts at the same time. Each takes some milliseconds, and a dead connection up to the timeout. */
const POSTS_AT_ONCE = 50;

/**
 * Sends new rows to the connections that watch their runs: one message for each connection, if it fits. A message that
 * cannot be sent is not sent again: the next event shows the client its gap, and it reads regularly anyway.
 */
export async function fanOut(ports: FanOutPorts, rows: readonly NewRow[]): Promise<void> {
  const byConnection = new Map<string, LiveEvent[]>();
  for (const [tenant, ofTenant] of Map.groupBy(rows, ({ tenant }) => tenant)) {
    // Once for all rows of the tenant. They were written before this read, so who subscribes after it gets them by replay.
    const watchers = await allowedWatchers(ports, tenant, await ports.live.watchers(tenant));
    if (watchers.length > 0) assign(ports, byConnection, watchers, ofTenant);
  }
  const waiting = [...byConnection];
  const post = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await send(ports, ...next);
  };
  await Promise.all(Array.from({ length: Math.min(POSTS_AT_ONCE, waiting.length) }, post));
}

/** Adds to each connection the events of the runs that it watches. */
function assign(
  { log }: FanOutPorts,
  byConnection: Map<string, LiveEvent[]>,
  watchers: readonly Watcher[],
  rows: readonly NewRow[],
): void {
  for (const [runId, rowsOfRun] of Map.groupBy(rows, (row) => row.runId)) {
    const ofRun = watchers.filter(({ subscription }) => subscription === EVERYTHING || subscription.runId === runId);
    const events = ofRun.length === 0 ? [] : rowsOfRun.flatMap((row) => eventsOfRow(row, log));
    for (const [connectionId, wantsOutput] of wantedBy(ofRun)) {
      const wanted = wantsOutput ? events : events.filter((event) => !isOutput(event));
      byConnection.set(connectionId, [...(byConnection.get(connectionId) ?? []), ...wanted]);
    }
  }
}

async function send({ live, sockets, log }: FanOutPorts, connectionId: string, events: LiveEvent[]): Promise<void> {
  try {
    for (const message of messagesOf(events)) {
      if ((await sockets.send(connectionId, JSON.stringify(message))) === 'gone') return await live.close(connectionId);
    }
  } catch (error) {
    log.warn('a live event could not be sent; its client reads it over the API', { connectionId, error });
  }
}

function eventsOfRow(row: NewRow, log: Log): LiveEvent[] {
  try {
    return row.kind === 'commit' ? eventsOf(row.runId, row.commit) : [outputEventOf(row, row.chunk)];
  } catch (error) {
    // One row that cannot be read must not hold up the others. Clients read it over the API.
    log.error('a row of the stream cannot be read', { sequenceNumber: row.sequenceNumber, error });
    return [];
  }
}

/** The feed of the tenant has no output: a command prints more than all events of a tenant. */
function wantedBy(watchers: readonly Watcher[]): Map<string, boolean> {
  const wanted = new Map<string, boolean>();
  for (const { connectionId, subscription } of watchers) {
    wanted.set(connectionId, (wanted.get(connectionId) ?? false) || subscription !== EVERYTHING);
  }
  return wanted;
}

/** A person who was removed receives nothing more, and their connections end. */
async function allowedWatchers(
  ports: FanOutPorts,
  tenant: string,
  watchers: readonly Watcher[],
): Promise<readonly Watcher[]> {
  const people = [...new Set(watchers.filter(({ machine }) => !machine).map(({ person }) => person))];
  const removed = new Set<string>();
  // At once: one after the other, hundreds of people would delay the batch by seconds.
  await Promise.all(people.map(async (person) => (await ports.isPerson(tenant, person)) || removed.add(person)));
  if (removed.size === 0) return watchers;
  await endConnections(ports, tenant, watchers, removed);
  return watchers.filter(({ machine, person }) => machine || !removed.has(person));
}

/** A person who was removed from a tenant. */
export interface RemovedPerson {
  tenant: string;
  person: string;
}

/** Ends the connections of removed people. Without it they would stay open until the next event of the tenant. */
export async function endConnectionsOf(ports: FanOutPorts, removed: readonly RemovedPerson[]): Promise<void> {
  for (const [tenant, ofTenant] of Map.groupBy(removed, ({ tenant }) => tenant)) {
    const people = new Set(ofTenant.map(({ person }) => person));
    await endConnections(ports, tenant, await ports.live.watchers(tenant), people);
  }
}

async function endConnections(
  { live, sockets, log }: FanOutPorts,
  tenant: string,
  watchers: readonly Watcher[],
  people: ReadonlySet<string>,
): Promise<void> {
  const ofPeople = watchers.filter(({ machine, person }) => !machine && people.has(person));
  for (const connectionId of new Set(ofPeople.map((watcher) => watcher.connectionId))) {
    await live.close(connectionId);
    await sockets
      .disconnect(connectionId)
      .catch((error) =>
        log.warn('a connection of a removed person stays open; it receives nothing', { tenant, error }),
      );
  }
}

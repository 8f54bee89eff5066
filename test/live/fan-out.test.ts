import { expect, it } from 'vitest';
import { endConnectionsOf, fanOut, type NewRow } from '../../lambdas/live/fan-out.ts';
import { eventId, type LiveEvent } from '../../lambdas/live/live-event.ts';
import { EVERYTHING, type PersonConnection, type Subscription } from '../../lambdas/live/live-store.ts';
import { subscribe } from '../../lambdas/live/subscribe.ts';
import type { Commit } from '../../lambdas/run/commit.ts';
import { FakeClock } from '../fakes/fake-clock.ts';
import { MemoryLive, MemorySockets } from '../fakes/memory/memory-live.ts';

const TENANT = 'acme';
const clock = new FakeClock();
const commit = (seq: number): Commit =>
  ({ seq, at: '2026-01-02T03:04:05.000Z', events: [{ type: 'run.enriched', enrichmentHash: 'h' }] }) as Commit;
const rowOf = (runId: string, seq: number): NewRow => ({
  ...{ tenant: TENANT, runId, sequenceNumber: String(seq) },
  ...{ kind: 'commit', commit: commit(seq) },
});
const log = { info() {}, warn() {}, error() {}, debug() {} } as never;

async function watching(
  live: MemoryLive,
  connectionId: string,
  subscription: Subscription,
  person = 'ana',
  machine = false,
) {
  const connection: PersonConnection = {
    ...{ connectionId, tenant: TENANT, person, machine, subscriptions: [], revision: 1 },
    ...{
      endsAt: new Date(clock.now() + 60_000).toISOString(),
      subscribed: { since: '2026-01-01T00:00:00Z', count: 0 },
    },
  };
  await live.open(connection);
  await live.subscribe(connection, { ...connection, subscriptions: [subscription], revision: 2 }, subscription);
}

const idsOf = (sockets: MemorySockets, connectionId: string): string[] =>
  sockets
    .of(connectionId)
    .flatMap((message) => ('events' in message ? (message.events as LiveEvent[]) : []))
    .map(({ id }) => id);

it('reads the watchers of a tenant once for a batch of many runs, and gives each connection the runs that it watches', async () => {
  const live = new MemoryLive(clock);
  const sockets = new MemorySockets();
  await watching(live, 'of-run', { runId: 'run_7' });
  await watching(live, 'of-all', EVERYTHING);
  let reads = 0;
  const counted = {
    close: (id: string) => live.close(id),
    watchers: (tenant: string) => {
      reads += 1;
      return live.watchers(tenant);
    },
  };
  const rows = Array.from({ length: 100 }, (_, index) => rowOf(`run_${index}`, 1));
  await fanOut({ live: counted, sockets, log, isPerson: async () => true }, rows);
  expect(reads).toBe(1);
  expect(idsOf(sockets, 'of-run')).toEqual([eventId('run_7', 1, 0)]);
  expect(idsOf(sockets, 'of-all')).toHaveLength(100);
});

it('sends the other rows if one cannot be read', async () => {
  const live = new MemoryLive(clock);
  const sockets = new MemorySockets();
  await watching(live, 'of-all', EVERYTHING);
  const unreadable: NewRow = {
    ...{ tenant: TENANT, runId: 'run_1', sequenceNumber: '1', kind: 'commit' },
    get commit(): Commit {
      throw new Error('a later version stored this row');
    },
  };
  await fanOut({ live, sockets, log, isPerson: async () => true }, [unreadable, rowOf('run_2', 1)]);
  expect(idsOf(sockets, 'of-all')).toEqual([eventId('run_2', 1, 0)]);
});

it('ends the connections of a person who was removed, also if closing them fails', async () => {
  const live = new MemoryLive(clock);
  const sockets = new MemorySockets();
  await watching(live, 'removed', EVERYTHING, 'wanda');
  await watching(live, 'stays', EVERYTHING);
  const isPerson = async (_tenant: string, person: string) => person !== 'wanda';
  const failing = {
    send: (id: string, message: string) => sockets.send(id, message),
    disconnect: async () => {
      throw new Error('the connection was not closed: 500');
    },
  };
  await fanOut({ live, sockets: failing, log, isPerson }, [rowOf('run_1', 1)]);
  expect([idsOf(sockets, 'removed').length, idsOf(sockets, 'stays').length]).toEqual([0, 1]);
  expect((await live.watchers(TENANT)).map(({ connectionId }) => connectionId)).toEqual(['stays']);
  await watching(live, 'removed', EVERYTHING, 'wanda');
  await fanOut({ live, sockets, log, isPerson }, [rowOf('run_1', 2)]);
  expect([...sockets.gone]).toEqual(['removed']);
});

it('ends the connections of a removed person at once: of this person, in this tenant, and not of programs with their id', async () => {
  const live = new MemoryLive(clock);
  const sockets = new MemorySockets();
  await watching(live, 'first', EVERYTHING, 'wanda');
  await watching(live, 'second', { runId: 'run_1' }, 'wanda');
  await watching(live, 'stays', EVERYTHING);
  await watching(live, 'program', EVERYTHING, 'wanda', true);
  const ports = { live, sockets, log, isPerson: async () => true };
  await endConnectionsOf(ports, [{ tenant: 'globex', person: 'wanda' }]);
  expect([...sockets.gone]).toEqual([]);
  await endConnectionsOf(ports, [{ tenant: TENANT, person: 'wanda' }]);
  expect([...sockets.gone].sort()).toEqual(['first', 'second']);
  expect((await live.watchers(TENANT)).map(({ connectionId }) => connectionId).sort()).toEqual(['program', 'stays']);
});

it('asks for each person once, and for all of them at the same time', async () => {
  const live = new MemoryLive(clock);
  for (let each = 0; each < 30; each += 1) await watching(live, `c${each}`, EVERYTHING, `person-${each % 10}`);
  let asking = 0;
  const askedAtOnce: number[] = [];
  const isPerson = async () => {
    asking += 1;
    askedAtOnce.push(asking);
    await Promise.resolve();
    asking -= 1;
    return true;
  };
  await fanOut({ live, sockets: new MemorySockets(), log, isPerson }, [rowOf('run_1', 1)]);
  expect([askedAtOnce.length, Math.max(...askedAtOnce)]).toEqual([10, 10]);
});

/** Lets two actors proceed call by call, in a given order. */
class Turns {
  readonly #waiting = new Map<string, () => void>();

  take<Result>(actor: string, call: () => Promise<Result>): Promise<Result> {
    return new Promise<void>((resolve) => this.#waiting.set(actor, resolve)).then(call);
  }

  async let(actor: string): Promise<void> {
    const [first] = this.#waiting.keys();
    const chosen = this.#waiting.has(actor) ? actor : first;
    if (chosen === undefined) return;
    const proceed = this.#waiting.get(chosen);
    this.#waiting.delete(chosen);
    proceed?.();
    for (let tick = 0; tick < 20; tick += 1) await Promise.resolve();
  }
}

const CALLS_MAX = 10;

it('a connection that subscribes while a commit is written and sent gets it, in every order of their calls', async () => {
  const ways = { sent: 0, replayed: 0 };
  for (let order = 0; order < 2 ** CALLS_MAX; order += 1) {
    const turns = new Turns();
    const live = new MemoryLive(clock);
    const sockets = new MemorySockets();
    const commits = [commit(1)];
    const connection: PersonConnection = {
      ...{ connectionId: 'c', tenant: TENANT, person: 'ana', machine: false, subscriptions: [], revision: 1 },
      ...{
        endsAt: new Date(clock.now() + 60_000).toISOString(),
        subscribed: { since: '2026-01-01T00:00:00Z', count: 0 },
      },
    };
    await live.open(connection);
    const subscriber = <Result>(call: () => Promise<Result>) => turns.take('subscriber', call);
    const writer = <Result>(call: () => Promise<Result>) => turns.take('writer', call);
    const bySubscribing = subscribe(
      {
        live: {
          connection: (id) => subscriber(() => live.connection(id)),
          subscribe: (...all) => subscriber(() => live.subscribe(...all)),
          close: (id) => live.close(id),
        },
        runs: {
          someRuns: () => subscriber(async () => [{ seq: commits.length }] as never),
          listCommits: (_tenant, _run, { after }) => subscriber(async () => commits.filter(({ seq }) => seq > after)),
        },
        output: {} as never,
        sockets,
        clock,
        isPerson: async () => true,
      },
      'c',
      { action: 'subscribe', run_id: 'run_1', last_event_id: [eventId('run_1', 1, 0)] },
    );
    let isSent = false;
    const byWriting = (async () => {
      await writer(async () => commits.push(commit(2)));
      const watchers = (tenant: string) => writer(() => live.watchers(tenant));
      const send = async (id: string, message: string) => {
        isSent = true;
        return sockets.send(id, message);
      };
      const ports = { live: { watchers, close: async () => {} }, sockets: { send, disconnect: async () => {} } };
      await fanOut({ ...ports, log, isPerson: async () => true }, [rowOf('run_1', 2)]);
    })();
    for (let turn = 0; turn < 2 * CALLS_MAX; turn += 1) await turns.let((order >> turn) & 1 ? 'writer' : 'subscriber');
    await Promise.all([bySubscribing, byWriting]);
    expect([order, idsOf(sockets, 'c')]).toEqual([order, expect.arrayContaining([eventId('run_1', 2, 0)])]);
    ways[isSent ? 'sent' : 'replayed'] += 1;
  }
  // Both ways occurred, so the orders differed.
  expect([ways.sent > 0, ways.replayed > 0]).toEqual([true, true]);
});

import { beforeEach, describe, expect, it } from 'vitest';
import {
  type AgentConnection,
  EVERYTHING,
  type LiveStore,
  type PersonConnection,
} from '../../lambdas/live/live-store.ts';
import type { FakeClock } from '../fakes/fake-clock.ts';

interface Given {
  live: LiveStore;
  clock: FakeClock;
  /** Different for each test, because they may share a table. */
  tenant: string;
}

export function liveStoreContract(name: string, given: () => Promise<Given> | Given): void {
  describe(`${name}: a live store`, () => {
    let live: LiveStore;
    let clock: FakeClock;
    let tenant: string;
    beforeEach(async () => {
      ({ live, clock, tenant } = await given());
    });

    const inMs = (ms: number) => new Date(clock.now() + ms).toISOString();
    const person = (id: string, further: Partial<PersonConnection> = {}): PersonConnection => ({
      ...{ connectionId: `${tenant}-${id}`, tenant, person: 'ana', machine: false, endsAt: inMs(60_000) },
      ...{ subscriptions: [], subscribed: { since: inMs(0), count: 0 }, revision: 1, ...further },
    });
    const agent = (id: string, agentId: string): AgentConnection => ({
      ...{ connectionId: `${tenant}-${id}`, tenant, agentId, endsAt: inMs(60_000), revision: 1 },
    });

    it('gives a ticket once, and not after it has expired', async () => {
      const ticket = { tenant, person: 'ana', machine: false, expiresAt: inMs(60_000), connectionEndsAt: inMs(99_000) };
      await live.saveTicket(`${tenant}-1`, ticket);
      await live.saveTicket(`${tenant}-2`, ticket);
      const taken = await Promise.all([live.takeTicket(`${tenant}-1`), live.takeTicket(`${tenant}-1`)]);
      expect(taken.filter(Boolean)).toEqual([ticket]);
      expect(await live.takeTicket(`${tenant}-1`)).toBeUndefined();
      clock.advance(60_000);
      expect(await live.takeTicket(`${tenant}-2`)).toBeUndefined();
      expect(await live.takeTicket(`${tenant}-unknown`)).toBeUndefined();
    });

    it('finds who watches something in the tenant, and nobody of another tenant', async () => {
      const [one, all, other] = [person('one'), person('all'), { ...person('other'), tenant: `${tenant}-x` }];
      for (const each of [one, all, other]) await live.open(each);
      const ofRun = { runId: 'run_1' };
      expect(await live.subscribe(one, { ...one, subscriptions: [ofRun], revision: 2 }, ofRun)).toBe(true);
      expect(await live.subscribe(all, { ...all, subscriptions: [EVERYTHING], revision: 2 }, EVERYTHING)).toBe(true);
      expect(await live.subscribe(other, { ...other, subscriptions: [ofRun], revision: 2 }, ofRun)).toBe(true);
      await live.open(agent('socket', 'a1'));
      const found = async () =>
        (await live.watchers(tenant)).map((each) => [each.connectionId, each.subscription]).sort();
      expect(await found()).toEqual([
        [all.connectionId, EVERYTHING],
        [one.connectionId, ofRun],
      ]);
      clock.advance(60_000);
      expect(await found()).toEqual([]);
      expect(await live.connection(one.connectionId)).toBeUndefined();
    });

    it('refuses to change a connection that was changed or closed since it was read', async () => {
      const read = person('one');
      await live.open(read);
      const ofRun = { runId: 'run_1' };
      const changed = { ...read, subscriptions: [ofRun], revision: 2 };
      expect(await live.subscribe(read, changed, ofRun)).toBe(true);
      expect(await live.subscribe(read, { ...changed, subscriptions: [EVERYTHING] }, EVERYTHING)).toBe(false);
      expect(await live.connection(read.connectionId)).toEqual(changed);
      await live.close(read.connectionId);
      expect(await live.subscribe(changed, { ...changed, revision: 3 }, ofRun)).toBe(false);
    });

    it('forgets a closed connection and its subscriptions', async () => {
      const read = person('one');
      await live.open(read);
      const ofRun = { runId: 'run_1' };
      await live.subscribe(read, { ...read, subscriptions: [ofRun], revision: 2 }, ofRun);
      await live.close(read.connectionId);
      await live.close(read.connectionId);
      expect(await live.watchers(tenant)).toEqual([]);
      expect(await live.connection(read.connectionId)).toBeUndefined();
    });

    it('counts each open connection of the tenant once, and none that is closed or has expired', async () => {
      const [one, all] = [person('one'), person('all')];
      for (const each of [one, all, agent('agent', 'a1')]) await live.open(each);
      const [first, second] = [{ runId: 'run_1' }, { runId: 'run_2' }];
      const twice = { ...one, subscriptions: [first], revision: 2 };
      await live.subscribe(one, twice, first);
      await live.subscribe(twice, { ...twice, subscriptions: [first, second], revision: 3 }, second);
      await live.subscribe(all, { ...all, subscriptions: [EVERYTHING], revision: 2 }, EVERYTHING);
      expect(await live.openConnections(tenant)).toBe(3);
      await live.close(all.connectionId);
      expect(await live.openConnections(tenant)).toBe(2);
      clock.advance(60_000);
      expect(await live.openConnections(tenant)).toBe(0);
    });

    it('has the newest connection of an agent; closing an older one does not remove it', async () => {
      const [first, second] = [agent('first', 'a1'), agent('second', 'a1')];
      await live.open(first);
      await live.open(second);
      await live.close(first.connectionId);
      expect(await live.agentConnection(tenant, 'a1')).toMatchObject({ connectionId: second.connectionId });
      expect(await live.agentConnection(tenant, 'a2')).toBeUndefined();
      await live.close(second.connectionId);
      expect(await live.agentConnection(tenant, 'a1')).toBeUndefined();
    });
  });
}

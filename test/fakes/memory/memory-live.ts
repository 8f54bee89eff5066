import type { Clock } from '../../../lambdas/entry/ports.ts';
import {
  type AgentConnection,
  type Connection,
  EVERYTHING,
  type LiveStore,
  type PersonConnection,
  type Sockets,
  type Subscription,
  type Ticket,
  type Watcher,
} from '../../../lambdas/live/live-store.ts';

export class MemoryLive implements LiveStore {
  readonly connections = new Map<string, Connection>();
  readonly tickets = new Map<string, Ticket>();
  readonly #watchers = new Map<string, Watcher & { tenant: string }>();
  readonly #agents = new Map<string, AgentConnection>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async saveTicket(ticketHash: string, ticket: Ticket): Promise<void> {
    this.tickets.set(ticketHash, ticket);
  }

  async takeTicket(ticketHash: string): Promise<Ticket | undefined> {
    const ticket = this.tickets.get(ticketHash);
    this.tickets.delete(ticketHash);
    return ticket && this.#isValid(ticket.expiresAt) ? ticket : undefined;
  }

  async connection(connectionId: string): Promise<Connection | undefined> {
    const connection = this.connections.get(connectionId);
    return connection && this.#isValid(connection.endsAt) ? connection : undefined;
  }

  async open(connection: Connection): Promise<void> {
    this.connections.set(connection.connectionId, connection);
    if ('agentId' in connection) this.#agents.set(`${connection.tenant}#${connection.agentId}`, connection);
  }

  async subscribe(read: PersonConnection, connection: PersonConnection, subscription: Subscription): Promise<boolean> {
    const { connectionId, tenant, person, machine, endsAt } = connection;
    if (this.connections.get(connectionId)?.revision !== read.revision) return false;
    this.connections.set(connectionId, connection);
    const watcher = { tenant, connectionId, person, machine, endsAt, subscription };
    this.#watchers.set(watcherKey(tenant, connectionId, subscription), watcher);
    return true;
  }

  async close(connectionId: string): Promise<void> {
    const connection = this.connections.get(connectionId);
    this.connections.delete(connectionId);
    if (!connection) return;
    const { tenant } = connection;
    if ('agentId' in connection) {
      const key = `${tenant}#${connection.agentId}`;
      if (this.#agents.get(key)?.connectionId === connectionId) this.#agents.delete(key);
      return;
    }
    for (const each of connection.subscriptions) this.#watchers.delete(watcherKey(tenant, connectionId, each));
  }

  async watchers(tenant: string): Promise<Watcher[]> {
    return [...this.#watchers.values()]
      .filter((each) => each.tenant === tenant && this.#isValid(each.endsAt))
      .map(({ tenant: _tenant, ...watcher }) => watcher);
  }

  async openConnections(tenant: string): Promise<number> {
    const ofTenant = [...this.#watchers.values(), ...this.#agents.values()].filter((each) => each.tenant === tenant);
    const open = ofTenant.filter(({ endsAt }) => this.#isValid(endsAt));
    return new Set(open.map(({ connectionId }) => connectionId)).size;
  }

  async agentConnection(tenant: string, agentId: string) {
    const connection = this.#agents.get(`${tenant}#${agentId}`);
    if (!connection || !this.#isValid(connection.endsAt)) return undefined;
    const { connectionId, endsAt } = connection;
    return { connectionId, endsAt };
  }

  #isValid(until: string): boolean {
    return Date.parse(until) > this.#clock.now();
  }
}

const watcherKey = (tenant: string, connectionId: string, subscription: Subscription): string =>
  `${tenant}#${subscription === EVERYTHING ? EVERYTHING : subscription.runId}#${connectionId}`;

/** Connections that remember what they received. */
export class MemorySockets implements Sockets {
  readonly received = new Map<string, unknown[]>();
  readonly gone = new Set<string>();
  readonly failing = new Set<string>();

  async send(connectionId: string, message: string): Promise<'sent' | 'gone'> {
    if (this.failing.has(connectionId)) throw new Error('the connection took no message: 500');
    if (this.gone.has(connectionId)) return 'gone';
    this.received.set(connectionId, [...(this.received.get(connectionId) ?? []), JSON.parse(message)]);
    return 'sent';
  }

  async disconnect(connectionId: string): Promise<void> {
    this.gone.add(connectionId);
  }

  /** What a connection received, by type. */
  of(connectionId: string): { type: string }[] {
    return (this.received.get(connectionId) ?? []) as { type: string }[];
  }
}

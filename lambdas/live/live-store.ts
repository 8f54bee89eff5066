/** Lets one person open one connection, within a minute. */
export interface Ticket {
  tenant: string;
  person: string;
  /** A program: no row of a person says whether it still exists. */
  machine: boolean;
  expiresAt: string;
  /** When a connection that was opened with it ends at the latest. */
  connectionEndsAt: string;
}

export const EVERYTHING = '*';
/** A run, or everything that happens in the tenant. */
export type Subscription = { runId: string } | typeof EVERYTHING;

interface OpenConnection {
  connectionId: string;
  tenant: string;
  endsAt: string;
  revision: number;
}

export interface PersonConnection extends OpenConnection {
  person: string;
  machine: boolean;
  subscriptions: Subscription[];
  /** When the current minute began, and how often the client has subscribed in it. */
  subscribed: { since: string; count: number };
}

export interface AgentConnection extends OpenConnection {
  agentId: string;
}

export type Connection = PersonConnection | AgentConnection;

/** Who receives the events of a run. */
export interface Watcher extends Pick<PersonConnection, 'connectionId' | 'person' | 'machine' | 'endsAt'> {
  subscription: Subscription;
}

/** Tickets, connections and subscriptions. All of them expire. */
export interface LiveStore {
  saveTicket(ticketHash: string, ticket: Ticket): Promise<void>;
  /** Removes the ticket: of two calls with the same one, one gets it. */
  takeTicket(ticketHash: string): Promise<Ticket | undefined>;
  connection(connectionId: string): Promise<Connection | undefined>;
  /** An agent has one connection: the last one. */
  open(connection: Connection): Promise<void>;
  /** Saves the connection that was read, with its new subscription. False if it was changed or removed since. */
  subscribe(read: PersonConnection, connection: PersonConnection, subscription: Subscription): Promise<boolean>;
  /** Removes the connection and its subscriptions. */
  close(connectionId: string): Promise<void>;
  /** Every connection of the tenant that watches something: one strongly consistent read, of nothing if nobody watches. */
  watchers(tenant: string): Promise<Watcher[]>;
  /** How many connections agents and subscribed people of the tenant have. */
  openConnections(tenant: string): Promise<number>;
  agentConnection(
    tenant: string,
    agentId: string,
  ): Promise<Pick<AgentConnection, 'connectionId' | 'endsAt'> | undefined>;
}

/** Open connections of the WebSocket API. */
export interface Sockets {
  /** `gone`: the connection is closed. Throws if it is not known whether the message arrived. */
  send(connectionId: string, message: string): Promise<'sent' | 'gone'>;
  /** Closes the connection, if it is open. */
  disconnect(connectionId: string): Promise<void>;
}

import { ConditionalCheckFailedException, DeleteItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { Clock } from '../entry/ports.ts';
import { ROW_IS_NEW, revisionIs } from '../run/dynamo/dynamo-conditions.ts';
import { docOf, type Item, toItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import { DynamoRows, wholePartition } from '../run/dynamo/dynamo-rows.ts';
import { type Condition, conditionFields } from '../run/dynamo/dynamo-transactions.ts';
import {
  type AgentConnection,
  type Connection,
  EVERYTHING,
  type LiveStore,
  type PersonConnection,
  type Subscription,
  type Ticket,
  type Watcher,
} from './live-store.ts';

type AgentSocket = Pick<AgentConnection, 'connectionId' | 'endsAt'>;

export class DynamoLiveStore implements LiveStore {
  readonly #client: DynamoDBClient;
  readonly #rows: DynamoRows;
  readonly #clock: Clock;

  constructor(client: DynamoDBClient, table: string, clock: Clock) {
    this.#client = client;
    this.#rows = new DynamoRows(client, table);
    this.#clock = clock;
  }

  async saveTicket(ticketHash: string, ticket: Ticket): Promise<void> {
    await this.#rows.save(expiring(keys.ticketKey(ticketHash), ticket, ticket.expiresAt), ROW_IS_NEW);
  }

  async takeTicket(ticketHash: string): Promise<Ticket | undefined> {
    return this.#unexpired(await this.#delete(keys.ticketKey(ticketHash)), ({ expiresAt }: Ticket) => expiresAt);
  }

  async connection(connectionId: string): Promise<Connection | undefined> {
    const item = await this.#rows.getItem(keys.connectionRowKey(connectionId));
    return this.#unexpired(item, ({ endsAt }: Connection) => endsAt);
  }

  async open(connection: Connection): Promise<void> {
    const { connectionId, tenant, endsAt } = connection;
    await this.#rows.save(connectionItem(connection));
    if (!('agentId' in connection)) return;
    const socket: AgentSocket = { connectionId, endsAt };
    await this.#rows.save(expiring(keys.agentSocketKey(tenant, connection.agentId), socket, endsAt, { connectionId }));
  }

  async subscribe(read: PersonConnection, connection: PersonConnection, subscription: Subscription): Promise<boolean> {
    if (!(await this.#rows.save(connectionItem(connection), revisionIs(read.revision)))) return false;
    const { connectionId, tenant, person, machine, endsAt } = connection;
    const watcher: Watcher = { connectionId, person, machine, endsAt, subscription };
    await this.#rows.save(expiring(watcherKey(tenant, connectionId, subscription), watcher, endsAt));
    return true;
  }

  async close(connectionId: string): Promise<void> {
    const item = await this.#delete(keys.connectionRowKey(connectionId));
    if (!item) return;
    const connection = docOf<Connection>(item);
    const { tenant } = connection;
    if ('agentId' in connection) {
      // The agent may have a newer connection.
      await this.#delete(keys.agentSocketKey(tenant, connection.agentId), isConnection(connectionId));
      return;
    }
    for (const each of connection.subscriptions) await this.#delete(watcherKey(tenant, connectionId, each));
  }

  async watchers(tenant: string): Promise<Watcher[]> {
    // Strongly consistent: a connection that subscribed before a commit must get it.
    const items = await this.#rows.range(keys.watchersOf(tenant));
    return items.flatMap((item) => this.#unexpired(item, ({ endsAt }: Watcher) => endsAt) ?? []);
  }

  async openConnections(tenant: string): Promise<number> {
    const rows = await this.#rows.range(wholePartition(keys.livePartition(tenant)));
    const open = rows.flatMap((item) => this.#unexpired(item, ({ endsAt }: AgentSocket) => endsAt) ?? []);
    return new Set(open.map(({ connectionId }) => connectionId)).size;
  }

  async agentConnection(tenant: string, agentId: string): Promise<AgentSocket | undefined> {
    const item = await this.#rows.getItem(keys.agentSocketKey(tenant, agentId));
    return this.#unexpired(item, ({ endsAt }: AgentSocket) => endsAt);
  }

  /** The row that was deleted. */
  async #delete(key: keys.Key, condition?: Condition): Promise<Item | undefined> {
    try {
      const { Attributes } = await this.#client.send(
        new DeleteItemCommand({
          TableName: this.#rows.table,
          Key: marshall(key),
          ReturnValues: 'ALL_OLD',
          ...(condition && conditionFields(condition)),
        }),
      );
      return Attributes;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return undefined;
      throw error;
    }
  }

  /** DynamoDB deletes expired rows days later. */
  #unexpired<Doc>(item: Item | undefined, endOf: (doc: Doc) => string): Doc | undefined {
    if (!item) return undefined;
    const doc = docOf<Doc>(item);
    return Date.parse(endOf(doc)) > this.#clock.now() ? doc : undefined;
  }
}

const isConnection = (connectionId: string): Condition => ({
  expression: '#connectionId = :connectionId',
  values: { ':connectionId': connectionId },
});

const watcherKey = (tenant: string, connectionId: string, subscription: Subscription) =>
  keys.watcherKey(tenant, connectionId, subscription === EVERYTHING ? undefined : subscription.runId);

const connectionItem = (connection: Connection): Item =>
  expiring(keys.connectionRowKey(connection.connectionId), connection, connection.endsAt);

const expiring = (key: keys.Key, doc: object, at: string, besides: Record<string, unknown> = {}): Item =>
  toItem(key, doc, { ...besides, [keys.TTL_ATTRIBUTE]: Math.ceil(Date.parse(at) / 1000) });

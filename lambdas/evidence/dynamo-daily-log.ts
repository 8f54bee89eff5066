import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { docOf, toItem } from '../run/dynamo-items.ts';
import { lastClosedLogKey, logPartition } from '../run/dynamo-keys.ts';
import { DynamoRows } from '../run/dynamo-rows.ts';
import type { Pause } from '../run/dynamo-transactions.ts';
import type { LogEntry } from '../run/log-entry.ts';
import type { PreviousDay } from './daily-log.ts';
import type { DailyLogRows } from './daily-log-close.ts';

export class DynamoDailyLog implements DailyLogRows {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string, pause: Pause) {
    this.#rows = new DynamoRows(client, table, pause);
  }

  async entries(tenant: string, day: string): Promise<LogEntry[]> {
    const items = await this.#rows.queryAll({
      KeyConditionExpression: 'pk = :pk',
      ExpressionAttributeValues: marshall({ ':pk': logPartition(tenant, day) }),
      ConsistentRead: true,
    });
    return items.map((item) => docOf<LogEntry>(item));
  }

  lastClosed(tenant: string): Promise<PreviousDay | undefined> {
    return this.#rows.get(lastClosedLogKey(tenant));
  }

  async saveLastClosed(tenant: string, closed: PreviousDay): Promise<void> {
    await this.#rows.transact([this.#rows.put(toItem(lastClosedLogKey(tenant), closed))]);
  }
}

import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { docOf, toItem } from '../../run/dynamo/dynamo-items.ts';
import { lastClosedLogKey, logPartition } from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows, wholePartition } from '../../run/dynamo/dynamo-rows.ts';
import type { LogEntry } from '../../run/log-entry.ts';
import type { DailyLogRows } from './close-days.ts';
import type { PreviousDay } from './daily-log.ts';

export class DynamoDailyLog implements DailyLogRows {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string) {
    this.#rows = new DynamoRows(client, table);
  }

  async *entries(tenant: string, day: string): AsyncGenerator<LogEntry> {
    for await (const items of this.#rows.pages(wholePartition(logPartition(tenant, day)))) {
      for (const item of items) yield docOf<LogEntry>(item);
    }
  }

  lastClosed(tenant: string): Promise<PreviousDay | undefined> {
    return this.#rows.get(lastClosedLogKey(tenant));
  }

  async saveLastClosed(tenant: string, closed: PreviousDay): Promise<void> {
    await this.#rows.save(toItem(lastClosedLogKey(tenant), closed));
  }
}

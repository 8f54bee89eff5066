import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { docOf, toItem } from '../../run/dynamo/dynamo-items.ts';
import { changePartition, FIRST, LAST, lastClosedChangesKey } from '../../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../../run/dynamo/dynamo-rows.ts';
import { type HistoryEntry, type LoggedChange, loggedChange } from './change-log.ts';
import type { ChangeLogRows, ClosedChanges } from './close-change-days.ts';

export class DynamoChangeLog implements ChangeLogRows {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string) {
    this.#rows = new DynamoRows(client, table);
  }

  async changes(tenant: string, day: string, { andBefore } = { andBefore: false }): Promise<LoggedChange[]> {
    // The sort key begins with the time of the change.
    const range = { pk: changePartition(tenant), from: andBefore ? FIRST : day, to: `${day}${LAST}` };
    // The first file has all earlier changes, which would not fit in memory with their values.
    const changes: LoggedChange[] = [];
    for await (const items of this.#rows.pages(range)) {
      for (const item of items) changes.push(loggedChange(docOf<HistoryEntry>(item)));
    }
    return changes;
  }

  lastClosed(tenant: string): Promise<ClosedChanges | undefined> {
    return this.#rows.get(lastClosedChangesKey(tenant));
  }

  async saveLastClosed(tenant: string, closed: ClosedChanges): Promise<void> {
    await this.#rows.save(toItem(lastClosedChangesKey(tenant), closed));
  }
}

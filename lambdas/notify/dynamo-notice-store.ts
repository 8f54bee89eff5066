import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { revisionIsStill } from '../run/dynamo/dynamo-conditions.ts';
import { docOf, toItem } from '../run/dynamo/dynamo-items.ts';
import * as keys from '../run/dynamo/dynamo-keys.ts';
import { DynamoRows } from '../run/dynamo/dynamo-rows.ts';
import { type Notice, type NoticeOf, type NoticeStore, nextRevision } from './notice-store.ts';

/** Apart from the rows of the run, so that who posts messages cannot change runs. */
export class DynamoNoticeStore implements NoticeStore {
  readonly #rows: DynamoRows;

  constructor(client: DynamoDBClient, table: string) {
    this.#rows = new DynamoRows(client, table);
  }

  notice({ tenant, runId, id }: NoticeOf): Promise<Notice | undefined> {
    return this.#rows.get(keys.noticeKey(tenant, runId, id));
  }

  async notices(tenant: string, runId: string): Promise<Notice[]> {
    const pk = keys.noticePartition(tenant, runId);
    const items = await this.#rows.range({ pk, from: keys.FIRST, to: keys.LAST });
    return items.map((item) => docOf<Notice>(item));
  }

  async save(read: Notice, changes: Partial<Notice>): Promise<Notice | undefined> {
    const notice = nextRevision(read, changes);
    const item = toItem(keys.noticeKey(notice.tenant, notice.runId, notice.id), notice);
    return (await this.#rows.save(item, revisionIsStill(read.revision))) ? notice : undefined;
  }
}

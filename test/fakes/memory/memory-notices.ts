import { type Notice, type NoticeOf, type NoticeStore, nextRevision } from '../../../lambdas/notify/notice-store.ts';
import { type Passage, undisturbed } from '../passage.ts';
import { MemoryRows } from './memory-rows.ts';

/** Notices without DynamoDB. */
export class MemoryNotices implements NoticeStore {
  readonly #rows = new MemoryRows<Notice>();
  readonly #passage: Passage;

  constructor(passage: Passage = undisturbed) {
    this.#passage = passage;
  }

  notice({ tenant, runId, id }: NoticeOf): Promise<Notice | undefined> {
    return this.#passage('notice', async () => this.#rows.get(`${tenant}#${runId}`, id));
  }

  notices(tenant: string, runId: string): Promise<Notice[]> {
    return this.#passage('notices', async () => this.#rows.inPartition(`${tenant}#${runId}`));
  }

  save(read: Notice, changes: Partial<Notice>): Promise<Notice | undefined> {
    return this.#passage('saveNotice', async () => {
      const notice = nextRevision(read, changes);
      const partition = `${notice.tenant}#${notice.runId}`;
      if ((this.#rows.peek(partition, notice.id)?.revision ?? 0) !== read.revision) return undefined;
      this.#rows.set(partition, notice.id, notice);
      return notice;
    });
  }
}

import { expect, it } from 'vitest';
import { type NoticeStore, newNotice } from '../../lambdas/notify/notice-store.ts';
import { STORY_BEGINS_AT as AT } from '../fakes/fake-clock.ts';

const CLAIM = { claimedAt: AT, lease: { owner: 'a', expiresAt: AT } };
let runs = 0;

/** What every store of notices does. */
export function noticeStoreContract(open: () => NoticeStore): void {
  const newRun = () => ({ tenant: 'noticed', runId: `run_${++runs}` });

  it('one of two writers changes the notice that both have read', async () => {
    const store = open();
    const read = newNotice({ ...newRun(), id: 'end.1' });
    const first = await store.save(read, { claim: CLAIM, notBefore: AT });
    expect(first).toEqual({ ...read, revision: 1, claim: CLAIM, notBefore: AT });
    expect(await store.save(read, { claim: CLAIM })).toBeUndefined();
    if (!first) throw new Error('not stored');
    const settled = await store.save(first, { claim: undefined, notBefore: undefined, notifiedAt: AT });
    expect(settled).toEqual({ ...read, revision: 2, notifiedAt: AT });
    expect(await store.save(first, { claim: CLAIM })).toBeUndefined();
    expect(await store.notice(read)).toEqual(settled);
  });

  it('each run has its own notices', async () => {
    const store = open();
    const [one, other] = [newRun(), newRun()];
    for (const id of ['end.2', 'end.1']) await store.save(newNotice({ ...one, id }), { skipped: 'no channel' });
    expect((await store.notices(one.tenant, one.runId)).map(({ id }) => id)).toEqual(['end.1', 'end.2']);
    expect(await store.notices(other.tenant, other.runId)).toEqual([]);
    expect(await store.notices('elsewhere', one.runId)).toEqual([]);
    expect(await store.notice({ ...other, id: 'end.1' })).toBeUndefined();
  });
}

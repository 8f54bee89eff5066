import { expect, it } from 'vitest';
import { type DigestStore, noDigests } from '../../lambdas/approval/digest/digest-store.ts';
import { newOutboxEntry } from '../../lambdas/outbox/outbox.ts';
import type { RunStore } from '../../lambdas/run/run-store.ts';
import { STORY_BEGINS_AT as AT } from '../fakes/fake-clock.ts';

const POSTED = { number: 1, at: AT, message: { channel: 'C1', ts: '1.2' }, repeatEntryId: 'x', repeatAt: AT };
const CLAIM = { number: 1, approvals: ['run_1.2-0'], added: [], claimedAt: AT, lease: { owner: 'a', expiresAt: AT } };
let tenants = 0;

/** What every store of digests does. `runs` is the outbox that it shares. */
export function digestStoreContract(open: () => { store: DigestStore; runs: Pick<RunStore, 'outboxEntries'> }): void {
  const tenant = () => `digests-${++tenants}`;

  it('one of two writers changes the state that both have read', async () => {
    const { store } = open();
    const read = noDigests(tenant(), '#ops');
    const first = await store.save(read, { number: 1, claim: CLAIM, notBefore: AT });
    expect(first).toEqual({ ...read, revision: 1, number: 1, claim: CLAIM, notBefore: AT });
    expect(await store.save(read, { number: 1, claim: CLAIM })).toBeUndefined();
    if (!first) throw new Error('not stored');
    const dropped = await store.save(first, { claim: undefined, notBefore: undefined });
    expect(dropped).toEqual({ ...read, revision: 2, number: 1 });
    expect(await store.save(first, { claim: CLAIM })).toBeUndefined();
    expect(await store.digests(read.tenant, '#ops')).toEqual(dropped);
  });

  it('each channel of each tenant has its own digests', async () => {
    const { store } = open();
    const [one, other] = [tenant(), tenant()];
    await store.save(noDigests(one, '#ops'), { posted: POSTED });
    expect(await store.digests(one, '#other')).toBeUndefined();
    expect(await store.digests(other, '#ops')).toBeUndefined();
  });

  it('the entry of a repeat is added and that of the last one deleted with the state, or nothing is', async () => {
    const { store, runs } = open();
    const of = { kind: 'repeat_digest', tenant: tenant(), runId: 'run_1', approvalId: 'run_1.2-0' } as const;
    const [first, second, third] = [1, 2, 3].map((number) => newOutboxEntry({ ...of, number }, AT));
    if (!first || !second || !third) throw new Error('three entries');
    const stored = async () => {
      const entries = await runs.outboxEntries([first.id, second.id, third.id]);
      return entries.map(({ id }) => id);
    };
    const read = noDigests(of.tenant, '#ops');
    const state = await store.save(read, { posted: POSTED }, { add: first });
    expect(await stored()).toEqual([first.id]);
    if (!state) throw new Error('not stored');
    expect(await store.save(state, { listed: ['run_1.2-0'] }, { add: second, remove: first.id })).toBeDefined();
    expect(await stored()).toEqual([second.id]);
    expect(await store.save(state, { listed: [] }, { add: third, remove: second.id })).toBeUndefined();
    expect(await stored()).toEqual([second.id]);
    expect(await store.digests(of.tenant, '#ops')).toMatchObject({ listed: ['run_1.2-0'], posted: POSTED });
  });
}

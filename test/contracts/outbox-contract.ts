import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newOutboxEntry, type OutboxDispatcher, type StartApproval } from '../../lambdas/outbox/outbox.ts';
import { later } from '../../lambdas/run/lease.ts';
import { STORY_BEGINS_AT } from '../fakes/fake-clock.ts';
import type { ApprovalFollow, ApprovalStart, DigestAsk, SealRequest } from '../fakes/memory/memory-outbox.ts';

export interface OpenOutbox {
  outbox: OutboxDispatcher;
  /** The messages to the sealer. */
  seals(): Promise<SealRequest[]>;
  /** The inputs of the started approval executions, by name. */
  approvals(): Promise<ApprovalStart[]>;
  /** The outbox entries that the function which posts cards got. */
  announcements(): Promise<StartApproval[]>;
  /** The messages to the function that publishes decisions. */
  follows(): Promise<ApprovalFollow[]>;
  /** The requests for digests. */
  digests(): Promise<DigestAsk[]>;
  close(): Promise<void>;
}

export function describeOutboxContract(name: string, open: () => Promise<OpenOutbox>): void {
  describe(`${name} as the outbox`, () => {
    let opened: OpenOutbox;
    beforeEach(async () => {
      opened = await open();
    });
    afterEach(() => opened.close());
    const facts = { tenant: 'acme', runId: 'run_1' };
    const clocks = {
      remindAt: later(STORY_BEGINS_AT, 1_000),
      slaAt: later(STORY_BEGINS_AT, 2_000),
      expiresAt: later(STORY_BEGINS_AT, 3_000),
    };
    const follow = (revision: number) =>
      newOutboxEntry({ kind: 'follow_approval', ...facts, approvalId: 'approval_1', revision }, STORY_BEGINS_AT);
    const seal = newOutboxEntry({ kind: 'seal_evidence', ...facts }, STORY_BEGINS_AT);
    const start = (approvalId: string) =>
      newOutboxEntry({ kind: 'start_approval', ...facts, approvalId, clocks }, STORY_BEGINS_AT);

    it('sends a seal message with the id of the outbox entry', async () => {
      await opened.outbox.dispatch(seal);
      expect(await opened.seals()).toEqual([{ kind: 'seal_evidence', entryId: seal.id, ...facts }]);
      expect(await opened.approvals()).toEqual([]);
    });

    it('starts the approval, with the id of the outbox entry', async () => {
      await opened.outbox.dispatch(start('approval_1'));
      expect(await opened.approvals()).toEqual([
        { entryId: start('approval_1').id, ...facts, approvalId: 'approval_1', ...clocks },
      ]);
      expect(await opened.seals()).toEqual([]);
    });

    it('sends a message for every change of an approval', async () => {
      await opened.outbox.dispatch(follow(2));
      await opened.outbox.dispatch(follow(3));
      const asked = [follow(2), follow(3)].map(({ id: entryId }) => ({ entryId, ...facts, approvalId: 'approval_1' }));
      expect(await opened.follows()).toEqual(asked);
      expect(await opened.approvals()).toEqual([]);
    });

    it('sends a message for an overdue approval and for the repeat of a digest', async () => {
      const about = { ...facts, approvalId: 'approval_1' };
      const overdue = newOutboxEntry({ kind: 'list_overdue', ...about }, STORY_BEGINS_AT);
      const repeat = newOutboxEntry({ kind: 'repeat_digest', ...about, number: 2 }, STORY_BEGINS_AT);
      await opened.outbox.dispatch(overdue);
      await opened.outbox.dispatch(repeat);
      expect(await opened.digests()).toEqual([
        { kind: 'list_overdue', entryId: overdue.id, ...about },
        { kind: 'repeat_digest', entryId: repeat.id, ...about },
      ]);
    });

    it('starts an approval once, however often it is dispatched', async () => {
      await opened.outbox.dispatch(start('approval_1'));
      await opened.outbox.dispatch(start('approval_1'));
      await opened.outbox.dispatch(start('approval_2'));
      expect((await opened.approvals()).map(({ approvalId }) => approvalId).sort()).toEqual([
        'approval_1',
        'approval_2',
      ]);
    });

    it('has the card of a new approval posted, and starts the approval if its entry is sent again', async () => {
      const action = { kind: 'start_approval', ...facts, approvalId: 'approval_1', clocks, announce: true } as const;
      const entry = newOutboxEntry(action, STORY_BEGINS_AT);
      await opened.outbox.dispatch(entry);
      expect(await opened.announcements()).toEqual([entry]);
      expect(await opened.approvals()).toEqual([]);
      await opened.outbox.dispatch({ ...entry, attempts: 1 });
      expect(await opened.approvals()).toEqual([{ entryId: entry.id, ...facts, approvalId: 'approval_1', ...clocks }]);
      expect(await opened.announcements()).toEqual([]);
    });

    it('accepts an approval that another outbox entry has already started', async () => {
      await opened.outbox.dispatch(start('approval_1'));
      await opened.outbox.dispatch({ ...start('approval_1'), id: 'another-entry' });
      expect(await opened.approvals()).toHaveLength(1);
    });
  });
}

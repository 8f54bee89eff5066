import { describe, expect, it } from 'vitest';
import { entryFromId, newOutboxEntry } from '../../lambdas/outbox/outbox.ts';

const AT = '2026-01-02T03:04:05.000Z';
const OF = { tenant: 'acme', runId: 'run_1' };
const APPROVAL = 'run_1.2-0';
const CLOCKS = { remindAt: AT, slaAt: AT, expiresAt: AT };
const clocks = async ({ approvalId }: { approvalId: string }) => (approvalId === APPROVAL ? CLOCKS : undefined);

describe('a damaged outbox entry', () => {
  it.each([
    newOutboxEntry({ kind: 'seal_evidence', ...OF }, AT),
    newOutboxEntry({ kind: 'export_run', ...OF }, AT),
    newOutboxEntry({ kind: 'seal_addendum', ...OF, seq: 8 }, AT),
    newOutboxEntry({ kind: 'follow_approval', ...OF, approvalId: APPROVAL, revision: 3 }, AT),
    newOutboxEntry({ kind: 'list_overdue', ...OF, approvalId: APPROVAL }, AT),
    newOutboxEntry({ kind: 'repeat_digest', ...OF, approvalId: APPROVAL, number: 2 }, AT),
    newOutboxEntry({ kind: 'start_approval', ...OF, approvalId: APPROVAL, clocks: CLOCKS }, AT),
  ])('is made again from its id: $id', async (entry) => {
    expect(await entryFromId(entry.id, AT, clocks)).toEqual(entry);
  });

  it.each(['', 'acme', 'acme.run_1.send_fax', 'acme.run_1.seal_addendum.x', 'acme.run_1.start_approval.run_1.9-9'])(
    'stays as it is if its id does not say what to do: "%s"',
    async (id) => {
      expect(await entryFromId(id, AT, clocks)).toBeUndefined();
    },
  );
});

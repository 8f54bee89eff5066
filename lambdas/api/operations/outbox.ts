import { isoNow } from '../../entry/ports.ts';
import { checkEntry, entryFromId, type OutboxEntry } from '../../outbox/outbox.ts';
import type { RunChanger } from '../../run-changes/run-changer.ts';
import type { outboxRoutes } from '../contract/operations.ts';
import { PAGE_MAX } from '../contract/schemas.ts';
import type { Handlers } from '../router.ts';

export const outboxHandlers: Handlers<Pick<RunChanger, 'runs' | 'clock'>, typeof outboxRoutes> = {
  /**
   * Resends one page of stuck entries. A resent entry is no longer stuck, so the next request gets the next page. The
   * sweeper sends the entries within a minute.
   */
  async redriveOutbox({ runs, clock }, { caller: { tenant }, body: { dryRun } }) {
    const found = await runs.stuckOutbox(tenant, PAGE_MAX + 1);
    const page = found.slice(0, PAGE_MAX);
    if (!dryRun) {
      const now = isoNow(clock);
      await Promise.all(page.map(async (entry) => runs.redriveOutbox(await repaired(runs, entry, now), now)));
    }
    const entries = page.map(({ id, kind, runId, attempts, createdAt, failed }) => ({
      id,
      // An entry of another version can lack any of these.
      kind: kind ?? null,
      runId: runId ?? null,
      attempts: attempts ?? 0,
      createdAt: createdAt ?? null,
      failed: failed ?? null,
    }));
    return { status: dryRun ? 200 : 202, body: { entries, more: found.length > page.length } };
  },
};

/** A damaged entry is made again from its id, with the count that was read: it is stored only if nobody changed it. */
async function repaired(runs: RunChanger['runs'], entry: OutboxEntry, at: string): Promise<OutboxEntry> {
  if (checkEntry(entry) === undefined) return entry;
  const made = await entryFromId(entry.id, at, async ({ tenant, runId, approvalId }) => {
    const approval = await runs.approval(tenant, runId, approvalId);
    return approval && { remindAt: approval.remindAt, slaAt: approval.slaAt, expiresAt: approval.expiresAt };
  });
  return made ? { ...made, attempts: entry.attempts } : entry;
}

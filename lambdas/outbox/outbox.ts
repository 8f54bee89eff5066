import * as z from 'zod';

/** An effect a commit promised. It is kept until the effect's own write removes it, so a lost message loses nothing. */
export const OutboxEntry = z.object({
  id: z.string(),
  kind: z.enum(['seal_evidence', 'start_approval']),
  tenant: z.string(),
  runId: z.string(),
  /** For `start_approval`: which one. */
  approvalId: z.string().optional(),
  attempts: z.int(),
  createdAt: z.string(),
  dueAt: z.string(),
});
export type OutboxEntry = z.infer<typeof OutboxEntry>;

/** How long the fast path has before the sweeper sends a promised effect again: min(30 s x 2^n, 5 min). */
const FIRST_RESEND_MS = 30_000;
const LONGEST_RESEND_MS = 5 * 60_000;
export const OUTBOX_ATTEMPTS_MAX = 5;

export function resendDelayMs(attempts: number): number {
  return Math.min(FIRST_RESEND_MS * 2 ** attempts, LONGEST_RESEND_MS);
}

export function promised(
  entry: Pick<OutboxEntry, 'kind' | 'tenant' | 'runId' | 'approvalId'>,
  at: string,
): OutboxEntry {
  return {
    ...entry,
    id: [entry.tenant, entry.runId, entry.kind, entry.approvalId].filter(Boolean).join('.'),
    attempts: 0,
    createdAt: at,
    dueAt: new Date(Date.parse(at) + resendDelayMs(0)).toISOString(),
  };
}

/** Sends a promised effect to whoever performs it. Sending twice must be harmless: the performer removes the entry. */
export interface OutboxDispatcher {
  dispatch(entry: OutboxEntry): Promise<void>;
}

import { OutcomeUnknown, TargetRefused } from '../../connectors/target-errors.ts';
import { type Approval, isOpen } from '../../run/approval.ts';
import type { RunStore } from '../../run/run-store.ts';
import type { DigestState } from './digest-store.ts';
import type { Digester } from './post-digest.ts';

export interface DigestCloser extends Pick<Digester, 'digests' | 'messages' | 'log'> {
  runs: Pick<RunStore, 'approvals' | 'completeOutboxEntry'>;
}

/** If all approvals of the last digest are closed, shows it on the message and stops the repeats. */
export async function closeDigest(
  closer: DigestCloser,
  { tenant, channel, listed, posted }: DigestState,
): Promise<void> {
  const { runs, messages, log } = closer;
  if (!posted) return;
  const approvals = await runs.approvals(tenant, listed);
  if (approvals.some(isOpen)) return;
  try {
    // Rows of sealed runs may be deleted after some days.
    if (approvals.length > 0) await messages.close(tenant, posted.message, approvals);
  } catch (error) {
    if (!(error instanceof TargetRefused) && !(error instanceof OutcomeUnknown)) throw error;
    // The entry of its repeat stays, which tries again.
    return log.warn('a digest could not be updated; its repeat tries again', { tenant, channel, error });
  }
  await runs.completeOutboxEntry(posted.repeatEntryId);
}

/** After an approval was closed. The last of several to be published finds all of them closed. */
export async function closeDigestOf(closer: DigestCloser, { tenant, channel, approvalId }: Approval): Promise<void> {
  const state = await closer.digests.digests(tenant, channel);
  if (state?.listed.includes(approvalId)) await closeDigest(closer, state);
}

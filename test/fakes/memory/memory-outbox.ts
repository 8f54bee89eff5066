import type * as z from 'zod';
import {
  type ApprovalClocks,
  isAnnouncement,
  type OutboxDispatcher,
  type OutboxEntry,
  type StartApproval,
} from '../../../lambdas/outbox/outbox.ts';
import { type Passage, undisturbed } from '../passage.ts';

export interface SealRequest {
  kind: 'seal_evidence' | 'seal_addendum' | 'export_run' | 'store_output';
  entryId: string;
  tenant: string;
  runId: string;
  /** Of a run that was not sealed soon. */
  again?: boolean;
  /** Of an addendum. */
  seq?: number;
  /** Of the output of a command. */
  stepIndex?: number;
  leaseVersion?: number;
}

export interface ApprovalFollow {
  entryId: string;
  tenant: string;
  runId: string;
  approvalId: string;
}

/** The request of an overdue approval, or of the repeat of a digest. */
export type DigestAsk = ApprovalFollow & { kind: 'list_overdue' | 'repeat_digest' };

export type RunEndRequest = Omit<ApprovalFollow, 'approvalId'>;

export type ApprovalStart = ApprovalFollow & z.infer<typeof ApprovalClocks>;

/** Replaces the queues, the function that posts cards and the approval state machine: collects messages; an approval starts once for each name. */
export class MemoryOutbox implements OutboxDispatcher {
  readonly #passage: Passage;
  readonly #approvals = new Map<string, ApprovalStart>();
  readonly #announced: StartApproval[] = [];
  readonly #seals: SealRequest[] = [];
  readonly #follows: ApprovalFollow[] = [];
  readonly #digests: DigestAsk[] = [];
  readonly #ends: RunEndRequest[] = [];
  readonly #progress: (RunEndRequest & { seq: number })[] = [];

  constructor(passage: Passage = undisturbed) {
    this.#passage = passage;
  }

  dispatch(entry: OutboxEntry): Promise<void> {
    return this.#passage(`outbox.${entry.kind}`, async () => {
      const { id: entryId, kind, tenant, runId } = entry;
      const request = { entryId, tenant, runId };
      if (kind === 'seal_evidence' || kind === 'export_run') {
        const again = kind === 'seal_evidence' && entry.attempts > 0;
        this.#seals.push({ kind, ...request, ...(again && { again }) });
        return;
      }
      if (kind === 'seal_addendum') {
        this.#seals.push({ kind, ...request, seq: entry.seq });
        return;
      }
      if (kind === 'store_output') {
        const { stepIndex, leaseVersion } = entry;
        this.#seals.push({ kind, ...request, stepIndex, leaseVersion });
        return;
      }
      if (kind === 'post_progress') {
        this.#progress.push({ ...request, seq: entry.seq });
        return;
      }
      if (kind === 'notify_run_end') {
        this.#ends.push(request);
        return;
      }
      const { approvalId } = entry;
      if (kind === 'follow_approval') this.#follows.push({ ...request, approvalId });
      else if (kind === 'list_overdue' || kind === 'repeat_digest')
        this.#digests.push({ kind, ...request, approvalId });
      else if (isAnnouncement(entry)) this.#announced.push(entry);
      else if (!this.#approvals.has(approvalId))
        this.#approvals.set(approvalId, { ...request, approvalId, ...entry.clocks });
    });
  }

  /** Removes and returns the messages to the sealer. */
  receiveSeals(): SealRequest[] {
    return this.#seals.splice(0);
  }

  /** Removes and returns the messages about changed approvals. */
  receiveFollows(): ApprovalFollow[] {
    return this.#follows.splice(0);
  }

  /** Takes out the requests for digests. */
  receiveDigests(): DigestAsk[] {
    return this.#digests.splice(0);
  }

  /** Takes out the requests to show progress. */
  receiveProgress(): (RunEndRequest & { seq: number })[] {
    return this.#progress.splice(0);
  }

  /** Takes out the requests to notify of the end of runs. */
  receiveEnds(): RunEndRequest[] {
    return this.#ends.splice(0);
  }

  /** Takes out the entries of approvals whose card is to be posted. */
  receiveAnnouncements(): StartApproval[] {
    return this.#announced.splice(0);
  }

  startedApprovals(): ApprovalStart[] {
    return [...this.#approvals.values()];
  }
}

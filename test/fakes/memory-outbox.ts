import type { OutboxDispatcher, OutboxEntry } from '../../lambdas/outbox/outbox.ts';
import { type Passage, undisturbed } from './passage.ts';

export interface SealRequest {
  entryId: string;
  tenant: string;
  runId: string;
}

export interface ApprovalStart extends SealRequest {
  approvalId: string;
}

/** Stands for the seal queue and the approval machine: requests to seal pile up, an approval starts once by its name. */
export class MemoryOutbox implements OutboxDispatcher {
  readonly #passage: Passage;
  readonly #approvals = new Map<string, ApprovalStart>();
  readonly #seals: SealRequest[] = [];

  constructor(passage: Passage = undisturbed) {
    this.#passage = passage;
  }

  dispatch({ id: entryId, kind, tenant, runId, approvalId = '' }: OutboxEntry): Promise<void> {
    return this.#passage(`outbox.${kind}`, async () => {
      const request = { entryId, tenant, runId };
      if (kind === 'seal_evidence') this.#seals.push(request);
      else if (!this.#approvals.has(approvalId)) this.#approvals.set(approvalId, { ...request, approvalId });
    });
  }

  /** Takes out the requests to seal. */
  receiveSeals(): SealRequest[] {
    return this.#seals.splice(0);
  }

  startedApprovals(): ApprovalStart[] {
    return [...this.#approvals.values()];
  }
}

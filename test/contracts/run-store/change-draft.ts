import type { OutboxEntry } from '../../../lambdas/outbox/outbox.ts';
import type { Approval } from '../../../lambdas/run/approval.ts';
import type { ApprovalWrite, ReceiptWrite, RunChange, StepWrite } from '../../../lambdas/run/commit.ts';
import type { RecordedError } from '../../../lambdas/run/errors.ts';
import type { Receipt } from '../../../lambdas/run/receipt.ts';
import type { ActiveRun, Run, RunStatus } from '../../../lambdas/run/run.ts';
import { type By, RunDraft } from '../../../lambdas/run/run-draft.ts';
import type { CapWrite } from '../../../lambdas/run/settings/caps.ts';
import type { Step } from '../../../lambdas/run/step.ts';

/**
 * A change with the expectations that a test sets: the draft that workers use only knows what it has read.
 */
export class ChangeDraft {
  readonly #draft: RunDraft;
  readonly #steps: StepWrite[] = [];
  readonly #approvals: ApprovalWrite[] = [];

  constructor(run: Run, at: string) {
    this.#draft = new RunDraft({ run, steps: new Map() }, at).record({
      type: 'run.assigned',
      assignee: at,
      actor: 'contract',
    });
  }

  move(to: RunStatus, by: By, error?: RecordedError): this {
    this.#draft.move(to, by, error);
    return this;
  }

  note(
    facts: Partial<
      Pick<ActiveRun, 'dueAt' | 'enrichment' | 'slot' | 'concurrencyKey' | 'approvalOverdueSince' | 'assignee'>
    >,
  ): this {
    this.#draft.note(facts);
    return this;
  }

  /** `takenLease`: the lease that the step had, if this change takes it from its holder. */
  writeStep(step: Step, takenLease?: number): this {
    this.#steps.push({ step, ...(takenLease !== undefined && { takenLease }) });
    return this;
  }

  requireSeal(sealDueAt: string): this {
    this.#draft.requireSeal(sealDueAt);
    return this;
  }

  writeReceipt(receipt: Receipt, expects: ReceiptWrite['expects']): this {
    this.#draft.putReceipt(receipt, expects);
    return this;
  }

  writeApproval(approval: Approval, expectedRevision: ApprovalWrite['expectedRevision']): this {
    this.#approvals.push({ approval, expectedRevision });
    return this;
  }

  cap(...writes: CapWrite[]): this {
    this.#draft.cap(...writes);
    return this;
  }

  enqueue(entry: OutboxEntry): this {
    this.#draft.enqueue(entry);
    return this;
  }

  seal(): RunChange {
    return { ...this.#draft.seal(), steps: this.#steps, approvals: this.#approvals };
  }
}

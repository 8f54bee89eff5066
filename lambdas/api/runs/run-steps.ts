import type { Approval } from '../../run/approval.ts';
import type { Commit } from '../../run/commit.ts';
import type { Receipt } from '../../run/receipt.ts';
import type { RunStore } from '../../run/run-store.ts';
import { receiptKeyOf, type Step, UNDO_INDEX_OFFSET } from '../../run/step.ts';
import type { Workflow } from '../../workflow/workflow.ts';
import type { Step as StepView } from '../contract/runs/steps.ts';
import { pageOf } from '../paging.ts';
import { cutToFit, withoutLargeValues } from '../response-size.ts';

/** Larger than the index of any step. */
const LAST_INDEX = 99_999;

/** All steps of a run: the workflow's steps in order, then the undo steps, the newest first. */
export function stepsOf(workflow: Workflow | undefined, rows: readonly Step[]): StepView[] {
  const byIndex = new Map(rows.map((row) => [row.index, row]));
  const defined = (workflow?.steps ?? []).map(({ id, tool }, index): StepView => {
    const row = byIndex.get(index);
    // A step that the run has not reached has no row.
    return row ?? { id, index, tool, status: 'pending' };
  });
  const undoSteps = rows.filter(({ undoes }) => undoes !== undefined).toReversed();
  return [...defined, ...undoSteps];
}

/** Sorts like `stepsOf`, and stays the same when further undo steps are added before the others. */
const placeOf = ({ index }: { index: number }): string =>
  String(index < UNDO_INDEX_OFFSET ? index : LAST_INDEX - index).padStart(5, '0');

export interface StepPage {
  steps: StepView[];
  receipts: Receipt[];
  approvals: Approval[];
  next?: string;
}

interface Shown {
  tenant: string;
  runId: string;
  steps: readonly StepView[];
  rows: readonly Step[];
  /** They record which approvals were requested. */
  commits: readonly Commit[];
}

/** One page of steps with their receipts and approvals, as many as fit in one response. */
export async function stepPage(
  { runs }: { runs: Pick<RunStore, 'receipts' | 'approvals'> },
  { tenant, steps, rows, commits }: Shown,
  place: { after?: string; limit: number },
): Promise<StepPage> {
  const wanted = await pageOf(steps, place, placeOf);
  const ids = new Set(wanted.items.map(({ id }) => id));
  const ofPage = rows.filter((row) => ids.has(row.id));
  const approvalIds = approvalIdsOf(ofPage, ids, commits);
  const [receipts, approvals] = await Promise.all([
    runs.receipts(
      tenant,
      ofPage.flatMap((row) => receiptKeyOf(row) ?? []),
    ),
    runs.approvals(tenant, approvalIds),
  ]);
  receipts.sort((a, b) => a.stepIndex - b.stepIndex);
  approvals.sort((a, b) => approvalIds.indexOf(a.approvalId) - approvalIds.indexOf(b.approvalId));
  const parts = wanted.items.map((step) => partOf(step, receipts, approvals));
  const { items, next } = cutToFit({ ...wanted, items: parts }, ({ step }) => placeOf(step));
  const receiptKeys = new Set<string>();
  return {
    steps: items.map(({ step }) => step),
    // Two steps can share one receipt.
    receipts: items.flatMap((part) => part.receipts).filter(({ key }) => !receiptKeys.has(key) && receiptKeys.add(key)),
    approvals: items.flatMap((part) => part.approvals),
    ...(next !== undefined && { next }),
  };
}

/** A step with its receipt and approvals, without large values. */
function partOf(step: StepView, receipts: readonly Receipt[], approvals: readonly Approval[]) {
  const receiptKey = 'receiptKey' in step ? step.receiptKey : undefined;
  return {
    step: withoutLargeValues(step),
    receipts: receipts.filter(({ key }) => key === receiptKey).map((each) => withoutLargeValues(each)),
    approvals: approvals.filter(({ stepId }) => stepId === step.id).map((each) => withoutLargeValues(each)),
  };
}

/** The approvals that these steps requested according to the commits, then the current ones: the oldest first. */
export function approvalIdsOf(rows: readonly Step[], ids: ReadonlySet<string>, commits: readonly Commit[]): string[] {
  const requested = commits
    .flatMap(({ events }) => events)
    .flatMap((event) => (event.type === 'approval.requested' && ids.has(event.step) ? [event.approvalId] : []));
  const current = rows.flatMap((row) =>
    row.status === 'waiting_approval' ? [row.approvalId] : (row.governed?.approvalId ?? []),
  );
  return [...new Set([...requested, ...current])];
}

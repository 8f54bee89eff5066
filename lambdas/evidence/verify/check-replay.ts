import { kindOf } from '../../run/events/events.ts';
import { emptyReplay, noteNames, type RecordedEvent, type Replay } from '../../run/events/replay-state.ts';
import type { EvidenceCommit } from '../bundle/commit-entry.ts';
import { awsRequestsOf, decisionsOf, policiesOf, spentBy } from '../bundle/derived-entries.ts';
import type { EvidenceDocument } from '../bundle/document.ts';
import type { EvidenceReceipt } from '../bundle/receipt-entry.ts';
import type { EvidenceStep } from '../bundle/step-entry.ts';
import { fieldMismatch, sameJson } from './field-mismatch.ts';
import { entryName, type Problem } from './problem.ts';

/** Returns the first entry that differs from what the commits prove. */
export function checkReplay(document: EvidenceDocument): Problem | undefined {
  const { run, trigger, steps, receipts, approvals } = document;
  const replay = replayOf(run.runId, document.commits);
  const { contradiction } = replay;
  return (
    (contradiction && { entry: `commit ${contradiction.seq}`, problem: contradiction.problem }) ??
    problemIn('run', fieldMismatch(run, replay.run)) ??
    problemIn('trigger', fieldMismatch(trigger, replay.trigger)) ??
    firstProblem('steps', steps, (step) => stepProblem(step, replay)) ??
    firstProblem('receipts', receipts, (receipt) => receiptProblem(receipt, replay)) ??
    firstProblem('approvals', approvals, (approval) => mismatch(approval, replay.approvals.get(approval.approvalId))) ??
    checkOrder(document) ??
    checkMissing(document, replay) ??
    checkDerived(document)
  );
}

export function replayOf(runId: string, commits: readonly EvidenceCommit[]): Replay {
  const replay = emptyReplay(runId);
  for (const { at, seq, events } of commits) {
    for (const [place, event] of events.entries()) {
      noteNames(replay, event, events[place - 1], seq);
      kindOf(event)?.replay?.(replay, event, { at, seq });
    }
  }
  return replay;
}

const problemIn = (entry: string, problem: string | undefined): Problem | undefined =>
  problem === undefined ? undefined : { entry, problem };

function firstProblem<Entry>(
  section: string,
  entries: readonly Entry[],
  problemOf: (entry: Entry) => string | undefined,
): Problem | undefined {
  for (const [index, entry] of entries.entries()) {
    const problem = problemIn(entryName(section, index, entry), problemOf(entry));
    if (problem) return problem;
  }
  return undefined;
}

const mismatch = (entry: object, recorded: object | undefined): string | undefined =>
  recorded ? fieldMismatch(entry, recorded) : 'is in no commit';

function stepProblem(step: EvidenceStep, { steps }: Replay): string | undefined {
  const recorded = steps.get(step.index);
  if (recorded?.fields.status === undefined) return 'is in no commit';
  const { input } = step;
  // Some steps end without storing the input of their claim.
  const claimed =
    recorded.claim && input ? fieldMismatch(input, { sha256: recorded.claim.inputHash }, 'input') : undefined;
  // A step that ended without a claim, for example rejected, shows the action that policy decided on last.
  const decided = step.action && recorded.decided && fieldMismatch(step.action, actionIn(recorded.decided), 'action');
  return claimed ?? decided ?? fieldMismatch(step, recorded.fields);
}

const actionIn = ({ tool, target, derived }: RecordedEvent) => ({ tool, target, derived });

/** A receipt is of a write of this run, or of the identical write of another run that this run reused. */
function receiptProblem(receipt: EvidenceReceipt, { runId, writes, reused }: Replay): string | undefined {
  const { key, runId: maker, openSince, outcome } = receipt;
  if (maker !== runId) {
    const isReused = reused.get(key) === maker && outcome === 'succeeded';
    return isReused ? undefined : `is of ${maker}, whose write this run did not reuse`;
  }
  const recorded = writes.get(key);
  if (recorded && !recorded.intentsAt.includes(openSince)) {
    return `says openSince: ${openSince}; no commit of that time intends the write`;
  }
  return mismatch(receipt, recorded?.fields);
}

/** Each list has one order, so that no entry can be in it twice. */
function checkOrder({ steps, receipts, approvals }: EvidenceDocument): Problem | undefined {
  return (
    outOfOrder(steps, 'steps', (a, b) => a.index < b.index) ??
    outOfOrder(receipts, 'receipts', (a, b) => a.index < b.index || (a.index === b.index && a.key < b.key)) ??
    twice(receipts) ??
    outOfOrder(approvals, 'approvals', (a, b) => placeOf(a) < placeOf(b))
  );
}

const placeOf = ({ requestedAt, approvalId }: EvidenceDocument['approvals'][number]) => `${requestedAt} ${approvalId}`;

function outOfOrder<Entry>(
  entries: readonly Entry[],
  section: string,
  isBefore: (a: Entry, b: Entry) => boolean,
): Problem | undefined {
  const at = entries.findIndex((entry, index) => {
    const previous = index === 0 ? undefined : entries[index - 1];
    return previous !== undefined && !isBefore(previous, entry);
  });
  return at < 0 ? undefined : { entry: entryName(section, at, entries[at]), problem: 'is duplicated or out of order' };
}

/** One key is one write, also if another run made it. */
function twice(receipts: readonly EvidenceReceipt[]): Problem | undefined {
  const firstAt = new Map(receipts.map(({ key }, index) => [key, index] as const).reverse());
  const at = receipts.findIndex(({ key }, index) => firstAt.get(key) !== index);
  return at < 0 ? undefined : { entry: entryName('receipts', at, receipts[at]), problem: 'is duplicated' };
}

/** The key of such a write is free. Another run may have used it since, and then the receipt is of that run. */
const KEY_IS_FREE: readonly unknown[] = ['failed', 'reversed'];

/** Returns the first entry that the commits prove and that is missing. */
function checkMissing({ receipts, approvals, steps }: EvidenceDocument, replay: Replay): Problem | undefined {
  const own = new Set<unknown>(receipts.flatMap(({ key, runId }) => (runId === replay.runId ? [key] : [])));
  for (const [key, { fields }] of replay.writes) {
    if (!own.has(key) && !KEY_IS_FREE.includes(fields.outcome)) return missing('receipt', fields.step);
  }
  const asked = new Set<unknown>(approvals.map(({ approvalId }) => approvalId));
  for (const [approvalId, { step }] of replay.approvals) {
    if (!asked.has(approvalId)) return missing('approval', step);
  }
  const indexes = new Set<unknown>(steps.map(({ index }) => index));
  for (const [index, { fields }] of replay.steps) {
    if (!indexes.has(index)) return missing('step', fields.id);
  }
  return undefined;
}

const missing = (kind: string, step: unknown): Problem => ({
  entry: `${kind} of ${step}`,
  problem: 'is missing, although it is in the commits',
});

function checkDerived(document: EvidenceDocument): Problem | undefined {
  const { run, decisions, commits, receipts, cost, awsRequestsAtLeast, versions } = document;
  const decided = decisionsOf(commits);
  const differing = Array.from({ length: Math.max(decided.length, decisions.length) }).findIndex(
    (_, index) => !sameJson(decisions[index], decided[index]),
  );
  if (differing >= 0)
    return { entry: entryName('decisions', differing, decisions[differing]), problem: 'differs from its commit' };
  if (!sameJson(cost, spentBy(run.runId, receipts)))
    return { entry: 'cost', problem: 'is not the sum of the receipts' };
  if (!sameJson(awsRequestsAtLeast, awsRequestsOf(document))) {
    return { entry: 'awsRequestsAtLeast', problem: 'is not the sum of commits, approvals and cost' };
  }
  if (!sameJson(versions.policies, policiesOf(decisions)) || !sameJson(versions.workflow, run.workflow)) {
    return { entry: 'versions', problem: 'are not those of the run and its decisions' };
  }
  return undefined;
}

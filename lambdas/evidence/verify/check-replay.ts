import { canonicalJson } from '../../run/canonical-json.ts';
import { awsRequestsOf, decisionsOf, policiesOf, spentBy } from '../bundle/derived-entries.ts';
import type { EvidenceDocument } from '../bundle/document.ts';
import type { EvidenceReceipt } from '../bundle/receipt-entry.ts';
import type { EvidenceStep } from '../bundle/step-entry.ts';
import { fieldMismatch } from './field-mismatch.ts';
import { entryName, type Problem } from './problem.ts';
import { type Replay, replayOf } from './replay.ts';

/** The first entry that says something else than the commits do, once these are read from the first to the last. */
export function checkReplay(document: EvidenceDocument): Problem | undefined {
  const { run, trigger, steps, receipts, approvals } = document;
  const replay = replayOf(run.runId, document.commits);
  return (
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

const mismatch = (entry: object, told: object | undefined): string | undefined =>
  told ? fieldMismatch(entry, told) : 'is told of by no commit';

function stepProblem(step: EvidenceStep, { steps }: Replay): string | undefined {
  const told = steps.get(step.index);
  if (told?.shows.status === undefined) return 'is told of by no commit';
  const { input } = step;
  // Not every ending keeps the input it was claimed with.
  const claimed = told.claim && input ? fieldMismatch(input, { sha256: told.claim.inputHash }, 'input') : undefined;
  return claimed ?? fieldMismatch(step, told.shows);
}

/** A receipt is of this run's own write, or of another run's that this one rested on. */
function receiptProblem(receipt: EvidenceReceipt, { runId, writes, reused }: Replay): string | undefined {
  const { key, runId: maker, openSince, outcome } = receipt;
  if (maker !== runId) {
    const rested = reused.get(key) === maker && outcome === 'succeeded';
    return rested ? undefined : `is of ${maker}, on which this run did not rest`;
  }
  const told = writes.get(key);
  if (told && !told.intentsAt.includes(openSince))
    return `says openSince: ${openSince}; its commits intend nothing then`;
  return mismatch(receipt, told?.shows);
}

/** Each list has one order and each entry one place in it, so that none can be there twice. */
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
  return at < 0
    ? undefined
    : { entry: entryName(section, at, entries[at]), problem: 'is there twice or out of its order' };
}

/** One key is one write, wherever another run had it. */
function twice(receipts: readonly EvidenceReceipt[]): Problem | undefined {
  const firstAt = new Map(receipts.map(({ key }, index) => [key, index] as const).reverse());
  const at = receipts.findIndex(({ key }, index) => firstAt.get(key) !== index);
  return at < 0 ? undefined : { entry: entryName('receipts', at, receipts[at]), problem: 'is there twice' };
}

/** The key of such a write is free for other runs, whose receipt then stands in its place. */
const MAY_HAVE_PASSED_ON: readonly unknown[] = ['failed', 'reversed'];

/** What the commits tell and no entry shows. */
function checkMissing({ receipts, approvals, steps }: EvidenceDocument, replay: Replay): Problem | undefined {
  const own = new Set<unknown>(receipts.flatMap(({ key, runId }) => (runId === replay.runId ? [key] : [])));
  for (const [key, { shows }] of replay.writes) {
    if (!own.has(key) && !MAY_HAVE_PASSED_ON.includes(shows.outcome)) return missing('receipt', shows.step);
  }
  const asked = new Set<unknown>(approvals.map(({ approvalId }) => approvalId));
  for (const [approvalId, { step }] of replay.approvals) {
    if (!asked.has(approvalId)) return missing('approval', step);
  }
  const indexes = new Set<unknown>(steps.map(({ index }) => index));
  for (const [index, { shows }] of replay.steps) {
    if (!indexes.has(index)) return missing('step', shows.id);
  }
  return undefined;
}

const missing = (kind: string, step: unknown): Problem => ({
  entry: `${kind} of ${step}`,
  problem: 'is missing: the commits tell of it',
});

const same = (a: unknown, b: unknown) => canonicalJson(a ?? null) === canonicalJson(b ?? null);

function checkDerived(document: EvidenceDocument): Problem | undefined {
  const { run, decisions, commits, receipts, cost, awsRequestsAtLeast, versions } = document;
  const decided = decisionsOf(commits);
  const odd = Array.from({ length: Math.max(decided.length, decisions.length) }).findIndex(
    (_, index) => !same(decisions[index], decided[index]),
  );
  if (odd >= 0) return { entry: entryName('decisions', odd, decisions[odd]), problem: 'is not what its commit says' };
  if (!same(cost, spentBy(run.runId, receipts))) return { entry: 'cost', problem: 'is not the sum of the receipts' };
  if (!same(awsRequestsAtLeast, awsRequestsOf(document))) {
    return { entry: 'awsRequestsAtLeast', problem: 'is not what commits, approvals and cost amount to' };
  }
  if (!same(versions.policies, policiesOf(decisions)) || !same(versions.workflow, run.workflow)) {
    return { entry: 'versions', problem: 'are not those of the run and its decisions' };
  }
  return undefined;
}

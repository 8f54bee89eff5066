import { canonicalJson } from '../run/canonical-json.ts';
import type { EvidenceApproval } from './approval-entry.ts';
import type { EvidenceDocument } from './document.ts';
import { entryName, type Flaw } from './flaw.ts';
import { awsRequestsOf, decisionsOf, policiesOf, spentBy } from './gathered-entries.ts';
import type { EvidenceReceipt } from './receipt-entry.ts';
import { type Replay, type ReplayedApproval, replayOf } from './replay.ts';
import type { EvidenceStep } from './step-entry.ts';

/** The first entry that says something else than the commits do, once these are read from the first to the last. */
export function replayFlaw(document: EvidenceDocument): Flaw | undefined {
  const replay = replayOf(document.commits);
  return (
    runFlaw(document, replay) ??
    first(document.steps, 'steps', (step) => stepFlaw(step, replay)) ??
    first(document.receipts, 'receipts', (receipt) => receiptFlaw(receipt, document.run.runId, replay)) ??
    first(document.approvals, 'approvals', (approval) => approvalFlaw(approval, replay)) ??
    missingFlaw(document, replay) ??
    gatheredFlaw(document)
  );
}

function first<Entry>(
  entries: readonly Entry[],
  section: string,
  problemOf: (entry: Entry) => string | undefined,
): Flaw | undefined {
  for (const [index, entry] of entries.entries()) {
    const problem = problemOf(entry);
    if (problem !== undefined) return { entry: entryName(section, index, entry), problem };
  }
  return undefined;
}

const same = (a: unknown, b: unknown) => canonicalJson(a ?? null) === canonicalJson(b ?? null);

function runFlaw({ run, trigger }: EvidenceDocument, { accepted, ended }: Replay): Flaw | undefined {
  const { automation, workflow, status, completedAt, error } = run;
  const begun = accepted && {
    automation: accepted.automation,
    workflow: accepted.workflow,
    trigger: { source: accepted.source, event: accepted.event, key: accepted.key },
  };
  if (!same({ automation, workflow, trigger: run.trigger }, begun)) {
    return { entry: 'run', problem: 'is not the one that commit 1 accepted' };
  }
  if (trigger.payload.sha256 !== accepted?.triggerHash) {
    return { entry: 'trigger', problem: 'is not the one that commit 1 accepted' };
  }
  const ending = ended && { status: ended.event.to, completedAt: ended.at, error: ended.event.error };
  if (same({ status, completedAt, error }, ending)) return undefined;
  return { entry: 'run', problem: `ended otherwise by its commits, as ${ending?.status} at ${ending?.completedAt}` };
}

/** How a step can stand once the commits have said this of it last. */
const ENDINGS: Record<string, readonly string[]> = {
  'step.succeeded': ['succeeded', 'rolled_back'],
  'step.failed': ['failed_terminal'],
  'step.canceled': ['canceled'],
};

function stepFlaw({ id, index, status, output, error }: EvidenceStep, { steps }: Replay): string | undefined {
  const ending = steps.get(index);
  const expected = ending && ENDINGS[ending.type];
  if (!ending || !expected?.includes(status)) return `is ${status}, which its commits do not say`;
  if (ending.step !== id) return `is called ${ending.step} by its commits`;
  if (ending.type === 'step.succeeded' && output?.sha256 !== ending.outputHash) {
    return 'has another output than its commits say';
  }
  if (ending.type === 'step.failed' && !same(error, ending.error)) return 'failed of something else by its commits';
  return undefined;
}

function receiptFlaw(receipt: EvidenceReceipt, ownRunId: string, { writes, reused }: Replay): string | undefined {
  const { key, runId, step, tool, target, requestHash, outcome } = receipt;
  if (runId !== ownRunId) {
    return reused.get(key) === runId ? undefined : `is of ${runId}, on which this run did not rest`;
  }
  const { intended, outcome: replayed } = writes.get(key) ?? {};
  if (!intended) return 'is of a write that no commit intends';
  const write = { step, tool, target, requestHash };
  const asIntended = {
    step: intended.step,
    tool: intended.tool,
    target: intended.target,
    requestHash: intended.requestHash,
  };
  if (!same(write, asIntended)) return 'is of another write than its commits intend';
  return outcome === replayed ? undefined : `says ${outcome}, its commits say ${replayed}`;
}

function approvalFlaw(approval: EvidenceApproval, { approvals }: Replay): string | undefined {
  const replayed = approvals.get(approval.approvalId);
  if (!replayed?.requested) return 'was asked for by no commit';
  if (replayed.requested.step !== approval.step) return `was asked for ${replayed.requested.step} by its commits`;
  if (replayed.actionHash !== approval.actionHash) return 'is for another action than its commits say';
  if (replayed.status !== undefined && replayed.status !== approval.status) {
    return `is ${approval.status}, its commits say ${replayed.status}`;
  }
  return votesFlaw(approval, replayed);
}

function votesFlaw({ votes }: EvidenceApproval, replayed: ReplayedApproval): string | undefined {
  const shown = votes.map(({ person, via, decision, reason }) => ({ person, via, decision, reason: reason?.sha256 }));
  const said = replayed.votes.map(({ person, via, decision, reasonHash }) => ({
    person,
    via,
    decision,
    reason: reasonHash,
  }));
  return same(shown, said) ? undefined : 'has other votes than its commits say';
}

/** What the commits tell and no entry shows. A receipt can have passed to another run, unless its write stood. */
function missingFlaw({ receipts, approvals, steps }: EvidenceDocument, replay: Replay): Flaw | undefined {
  const shown = new Set<unknown>(
    [...receipts, ...approvals].map((entry) => ('key' in entry ? entry.key : entry.approvalId)),
  );
  for (const [key, { outcome, intended }] of replay.writes) {
    if (outcome === 'succeeded' && !shown.has(key)) return missing('receipt', intended?.step);
  }
  for (const [approvalId, { requested }] of replay.approvals) {
    if (!shown.has(approvalId)) return missing('approval', requested?.step);
  }
  const indexes = new Set<unknown>(steps.map(({ index }) => index));
  for (const [index, { step }] of replay.steps) {
    if (!indexes.has(index)) return missing('step', step);
  }
  return undefined;
}

const missing = (kind: string, step: unknown): Flaw => ({
  entry: `${kind} of ${step}`,
  problem: 'is missing: the commits tell of it',
});

function gatheredFlaw(document: EvidenceDocument): Flaw | undefined {
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

import type { Approval } from '../approval/approval.ts';
import { canonicalJson } from '../run/canonical-json.ts';
import type { Commit } from '../run/commit.ts';
import type { Receipt } from '../run/receipt.ts';
import type { TerminalRun, Trigger } from '../run/run.ts';
import type { Step } from '../run/step.ts';
import { describeApproval } from './approval-entry.ts';
import { describeCommit } from './commit-entry.ts';
import { BUNDLE_FORMAT, type EvidenceDocument, indexOf } from './document.ts';
import { awsRequestsOf, decisionsOf, policiesOf, spentBy } from './gathered-entries.ts';
import { describeReceipt } from './receipt-entry.ts';
import { describeRun, describeTrigger } from './run-entry.ts';
import { RUNTIME_VERSION } from './runtime-version.ts';
import { describeStep } from './step-entry.ts';

export interface BundleContents {
  run: TerminalRun;
  trigger: Trigger;
  steps: Step[];
  commits: Commit[];
  receipts: Receipt[];
  approvals: Approval[];
}

interface Bundle {
  documentKey: string;
  document: Buffer;
  envelopeKey: string;
}

/** Same run, same bytes, same name: sealing twice gives the identical document. */
export function buildBundle(contents: BundleContents): Bundle {
  const { tenant, runId } = contents.run;
  return {
    document: Buffer.from(canonicalJson(describe(contents))),
    documentKey: `evidence/${tenant}/${runId}/bundle.json`,
    envelopeKey: `evidence/${tenant}/${runId}/bundle.dsse.json`,
  };
}

function describe(contents: BundleContents): EvidenceDocument {
  const { run } = contents;
  const commits = contents.commits.map(describeCommit);
  const decisions = decisionsOf(commits);
  const approvals = contents.approvals.toSorted(byAge).map(describeApproval);
  const receipts = contents.receipts.map(describeReceipt);
  const cost = spentBy(run.runId, receipts);
  const entries = {
    run: describeRun(run),
    trigger: describeTrigger(contents.trigger),
    steps: contents.steps.map(describeStep),
    decisions,
    approvals,
    receipts,
    cost,
    awsRequestsAtLeast: awsRequestsOf({ commits, approvals, cost }),
    versions: {
      runtime: RUNTIME_VERSION,
      workflow: { name: run.workflow.name, version: run.workflow.version },
      policies: policiesOf(decisions),
    },
  };
  const head = { hash: run.headHash, count: run.seq };
  return { format: BUNDLE_FORMAT, ...entries, index: indexOf(entries), commits, head };
}

const byAge = (a: Approval, b: Approval) =>
  `${a.requestedAt} ${a.approvalId}` < `${b.requestedAt} ${b.approvalId}` ? -1 : 1;

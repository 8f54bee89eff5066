import packageFile from '../../../package.json' with { type: 'json' };
import { canonicalJson } from '../../run/canonical-json.ts';
import type { Commit } from '../../run/commit.ts';
import type { Receipt } from '../../run/receipt.ts';
import type { Run, TerminalRun } from '../../run/run.ts';
import type { RunRow } from '../../run/run-store.ts';
import { describeApproval, type EvidenceApproval } from './approval-entry.ts';
import { describeCommit, type EvidenceCommit } from './commit-entry.ts';
import { awsRequestsOf, decisionsOf, policiesOf, spentBy } from './derived-entries.ts';
import { BUNDLE_FORMAT, type EvidenceDocument, indexOf } from './document.ts';
import { describeReceipt, type EvidenceReceipt } from './receipt-entry.ts';
import { describeRun, describeTrigger, type EvidenceTrigger } from './run-entry.ts';
import { describeStep, type EvidenceStep } from './step-entry.ts';

/** Put here when functions are bundled: a hash of all that they are made of. */
declare const COUNTERSIGN_BUILD: string | undefined;

const build = typeof COUNTERSIGN_BUILD === 'undefined' ? 'unbundled' : COUNTERSIGN_BUILD;

/** Of this runtime and the connectors in it: `0.1.0+3f2a…`, another for any other sources. */
export const RUNTIME_VERSION = `${packageFile.version}+${build}`;

export const documentKey = ({ tenant, runId }: TerminalRun) => `evidence/${tenant}/${runId}/bundle.json`;
export const envelopeKey = ({ tenant, runId }: TerminalRun) => `evidence/${tenant}/${runId}/bundle.dsse.json`;

/** Takes a run row by row and keeps of each only its entry: what people and systems wrote is let go of at once. */
export class BundleDraft {
  readonly #approvals: EvidenceApproval[] = [];
  readonly #commits: EvidenceCommit[] = [];
  readonly #steps: EvidenceStep[] = [];
  readonly #receipts: EvidenceReceipt[] = [];
  readonly #begun = new Set<string>();
  /** Key → the run that made the write. */
  readonly #restedOn = new Map<string, string>();
  #trigger: EvidenceTrigger | undefined;
  #run: Run | undefined;

  take(row: RunRow): void {
    switch (row.kind) {
      case 'approval':
        this.#approvals.push(describeApproval(row.approval));
        break;
      case 'commit':
        this.#commits.push(describeCommit(row.commit));
        this.#noteReceipts(row.commit);
        break;
      case 'run':
        this.#run = row.run;
        break;
      case 'step':
        this.#steps.push(describeStep(row.step));
        break;
      case 'trigger':
        this.#trigger = describeTrigger(row.trigger);
    }
  }

  #noteReceipts({ events }: Commit): void {
    for (const event of events) {
      if (event.type === 'write.intended') this.#begun.add(event.receiptKey);
      if (event.type === 'write.reused') this.#restedOn.set(event.receiptKey, event.firstRunId);
    }
  }

  /** Once all rows were taken; undefined if there is no such run. */
  get run(): Run | undefined {
    return this.#trigger && this.#run;
  }

  /** Of every write the run began, undone ones and undoing ones too, and of those of others that it rested on. */
  get receiptKeys(): string[] {
    return [...new Set([...this.#begun, ...this.#restedOn.keys()])];
  }

  /** A key may have passed to another run since: that receipt is the other's evidence, unless this run rested on it. */
  takeReceipt(receipt: Receipt): void {
    const isRestedOn = this.#restedOn.get(receipt.key) === receipt.runId && receipt.outcome === 'succeeded';
    if (receipt.runId === this.#run?.runId || isRestedOn) this.#receipts.push(describeReceipt(receipt));
  }

  /** Same run, same bytes: sealing twice gives the identical document. */
  build(run: TerminalRun): Buffer {
    return Buffer.from(canonicalJson(this.#document(run)));
  }

  #document(run: TerminalRun): EvidenceDocument {
    if (!this.#trigger) throw new Error(`run ${run.runId} has no trigger`);
    const commits = this.#commits;
    const decisions = decisionsOf(commits);
    const approvals = this.#approvals.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    const receipts = this.#receipts.toSorted((a, b) => a.index - b.index || (a.key < b.key ? -1 : 1));
    const cost = spentBy(run.runId, receipts);
    const entries = {
      run: describeRun(run),
      trigger: this.#trigger,
      steps: this.#steps,
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
}

const placeOf = ({ requestedAt, approvalId }: EvidenceApproval) => `${requestedAt} ${approvalId}`;

import packageFile from '../../../package.json' with { type: 'json' };
import type { Commit } from '../../run/commit.ts';
import type { Receipt } from '../../run/receipt.ts';
import type { Run, TerminalRun } from '../../run/run.ts';
import type { RunRow } from '../../run/run-store.ts';
import { endsRun } from '../../run/statuses/ended-run.ts';
import { type NamedTexts, textsNamedIn } from '../named-texts.ts';
import { describeApproval, type EvidenceApproval } from './approval-entry.ts';
import { describeCommit, type EvidenceCommit } from './commit-entry.ts';
import { awsRequestsOf, decisionsOf, policiesOf, spentBy } from './derived-entries.ts';
import { BUNDLE_FORMAT, type EvidenceDocument } from './document.ts';
import { DocumentTexts, indexOf } from './document-texts.ts';
import { describeReceipt, type EvidenceReceipt } from './receipt-entry.ts';
import { describeRun, describeTrigger, type EvidenceTrigger } from './run-entry.ts';
import { describeStep, type EvidenceStep } from './step-entry.ts';

/** Defined by the bundler: a hash of all sources. */
declare const COUNTERSIGN_BUILD: string | undefined;

const build = typeof COUNTERSIGN_BUILD === 'undefined' ? 'unbundled' : COUNTERSIGN_BUILD;

/** Version and build of the runtime and its connectors: `0.1.0+3f2a…`. */
export const RUNTIME_VERSION = `${packageFile.version}+${build}`;

/** Reads a run row by row. Stores only the entry of each row, so that texts and payloads are freed at once. */
export class BundleDraft {
  readonly #approvals: EvidenceApproval[] = [];
  readonly #commits: EvidenceCommit[] = [];
  readonly #steps: EvidenceStep[] = [];
  readonly #receipts: EvidenceReceipt[] = [];
  readonly #begun = new Set<string>();
  /** Receipt key → the run that made the write. */
  readonly #reused = new Map<string, string>();
  #trigger: EvidenceTrigger | undefined;
  #run: Run | undefined;
  #hasEnded = false;
  #isSealed = false;

  take(row: RunRow): void {
    switch (row.kind) {
      case 'approval':
        this.#approvals.push(describeApproval(row.approval));
        break;
      case 'assignment':
        break;
      case 'commit':
        this.#takeCommit(row.commit);
        break;
      case 'evidence':
        this.#isSealed = true;
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

  /** Commits after the end of the run are not part of the bundle; each is an addendum to it. */
  #takeCommit(commit: Commit): void {
    if (this.#hasEnded) return;
    this.#commits.push(describeCommit(commit));
    this.#noteReceipts(commit);
    this.#hasEnded = endsRun(commit);
  }

  #noteReceipts({ events }: Commit): void {
    for (const event of events) {
      if (event.type === 'write.intended') this.#begun.add(event.receiptKey);
      if (event.type === 'write.reused') this.#reused.set(event.receiptKey, event.firstRunId);
    }
  }

  /** After all rows; undefined if there is no such run. */
  get run(): Run | undefined {
    return this.#trigger && this.#run;
  }

  /** The bundle exists. Rows may have changed since: the receipts of a run that was resolved or rolled back. */
  get isSealed(): boolean {
    return this.#isSealed;
  }

  /** The commit that ended the run. */
  get head(): EvidenceDocument['head'] {
    const last = this.#commits.at(-1);
    if (!last) throw new Error('a run without commits');
    return { hash: last.hash, count: last.seq };
  }

  /** The policies and the workflow of the run. */
  get texts(): NamedTexts {
    return textsNamedIn(this.#commits);
  }

  /** Of all writes of the run, including undone and undo writes, and of writes of other runs that it reused. */
  get receiptKeys(): string[] {
    return [...new Set([...this.#begun, ...this.#reused.keys()])];
  }

  /** Skips the receipt of another run that has used the key since, unless this run reused that write. */
  takeReceipt(receipt: Receipt): void {
    const isReused = this.#reused.get(receipt.key) === receipt.runId && receipt.outcome === 'succeeded';
    if (receipt.runId === this.#run?.runId || isReused) this.#receipts.push(describeReceipt(receipt));
  }

  /** The same run gives the same bytes. */
  build(run: TerminalRun): Buffer {
    const texts = new DocumentTexts(this.#parts(run));
    return Buffer.from(texts.whole(indexOf(texts)));
  }

  #parts(run: TerminalRun): Omit<EvidenceDocument, 'index'> {
    if (!this.#trigger) throw new Error(`run ${run.runId} has no trigger`);
    const commits = this.#commits;
    const decisions = decisionsOf(commits);
    const approvals = this.#approvals.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    const receipts = this.#receipts.toSorted((a, b) => a.index - b.index || (a.key < b.key ? -1 : 1));
    const cost = spentBy(run.runId, receipts);
    return {
      format: BUNDLE_FORMAT,
      run: describeRun(run),
      trigger: this.#trigger,
      steps: this.#steps,
      decisions,
      approvals,
      receipts,
      cost,
      awsRequestsAtLeast: awsRequestsOf({ format: BUNDLE_FORMAT, commits, approvals, cost }),
      versions: {
        runtime: RUNTIME_VERSION,
        workflow: { name: run.workflow.name, version: run.workflow.version },
        policies: policiesOf(decisions),
      },
      commits,
      head: this.head,
    };
  }
}

const placeOf = ({ requestedAt, approvalId }: EvidenceApproval) => `${requestedAt} ${approvalId}`;

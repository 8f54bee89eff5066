import { type Clock, isoNow, type Log } from '../../entry/ports.ts';
import { newOutboxEntry, type OutboxEntry } from '../../outbox/outbox.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import type { Commit } from '../../run/commit.ts';
import { endsRun } from '../../run/ended-run.ts';
import type { Receipt } from '../../run/receipt.ts';
import { isTerminal, type Run, type TerminalRun } from '../../run/run.ts';
import type { ArtifactReference, RunRow, RunStore } from '../../run/run-store.ts';
import type { EvidenceStore } from '../evidence-store.ts';
import { receiptKeysIn, receiptsOf } from '../receipts-of-run.ts';
import { artifactKey, completionArtifact, enrichmentArtifact, stepArtifact } from './artifacts.ts';
import { siemKey, siemLines } from './siem.ts';
import { approvalValues, commitValues, receiptValues, stepValues, triggerValues, valuesDocument } from './values.ts';

/** The exports of a stage, and where they are stored. */
export interface Exports {
  store: EvidenceStore;
  /** Encrypts under the key of the values. */
  artifacts: EvidenceStore;
  wanted: readonly ('siem' | 'artifacts')[];
}

interface ExportedObject {
  /** Of an artifact; the SIEM lines have none. */
  name?: ArtifactReference['name'];
  key: string;
  content: Buffer;
  type: string;
}

/** Reads a run row by row and stores what is exported. */
export class ExportDraft {
  readonly #wanted: Exports['wanted'];
  readonly #commits: Commit[] = [];
  readonly #steps: Buffer[] = [];
  readonly #values = {
    trigger: undefined as Buffer | undefined,
    steps: [] as Buffer[],
    approvals: [] as Buffer[],
    receipts: [] as Buffer[],
    commits: [] as Buffer[],
  };
  readonly #receiptKeys = new Set<string>();
  #hasEnded = false;
  #run: Run | undefined;

  constructor(wanted: Exports['wanted']) {
    this.#wanted = wanted;
  }

  take(row: RunRow): void {
    if (row.kind === 'run') this.#run = row.run;
    if (row.kind === 'commit' && this.#wanted.includes('siem') && !this.#hasEnded) this.#commits.push(row.commit);
    if (this.#wanted.includes('artifacts')) this.#takeValues(row);
    // Commits after the end are exported with their addenda.
    if (row.kind === 'commit' && endsRun(row.commit)) this.#hasEnded = true;
  }

  #takeValues(row: RunRow): void {
    const values = this.#values;
    if (row.kind === 'trigger') values.trigger = triggerValues(row.trigger);
    if (row.kind === 'approval') values.approvals.push(approvalValues(row.approval));
    if (row.kind === 'commit' && !this.#hasEnded) {
      values.commits.push(commitValues(row.commit));
      for (const key of receiptKeysIn(row.commit)) this.#receiptKeys.add(key);
    }
    if (row.kind === 'step') {
      this.#steps.push(stepArtifact(row.step));
      values.steps.push(stepValues(row.step));
    }
  }

  /** The receipts whose values are exported, after all rows. */
  get receiptKeys(): string[] {
    return [...this.#receiptKeys];
  }

  takeReceipt(receipt: Receipt): void {
    if (this.#receiptKeys.has(receipt.key)) this.#values.receipts.push(receiptValues(receipt));
  }

  /** After all rows. */
  get run(): Run | undefined {
    return this.#run;
  }

  /** One by one, because together they may exceed the memory of a function. */
  *objects(run: TerminalRun): Generator<ExportedObject> {
    if (this.#wanted.includes('siem')) {
      yield { key: siemKey(run), content: siemLines(run, this.#commits), type: 'application/x-ndjson' };
    }
    if (!this.#wanted.includes('artifacts')) return;
    const type = 'application/json';
    if (run.enrichment) {
      const content = enrichmentArtifact(run.enrichment);
      yield { name: 'enrichment', key: artifactKey(run, 'enrichment.json'), content, type };
    }
    const completion = completionArtifact(run, this.#steps);
    yield { name: 'completion', key: artifactKey(run, 'completion.json'), content: completion, type };
    yield { name: 'values', key: artifactKey(run, 'values.json'), content: valuesDocument(run, this.#values), type };
  }
}

/** Tries at once. A failed export becomes an outbox entry, so it delays nothing else. */
export async function exportOrEnqueue(
  { exports, clock, log }: { exports: Exports; clock: Clock; log: Log },
  run: TerminalRun,
  draft: ExportDraft,
): Promise<{ artifacts: ArtifactReference[]; outboxEntries: OutboxEntry[] }> {
  const { complete, artifacts } = await exportRun(exports, run, draft, log);
  const { tenant, runId } = run;
  const again = newOutboxEntry({ kind: 'export_run', tenant, runId }, isoNow(clock));
  return { artifacts, outboxEntries: complete ? [] : [again] };
}

/** Completes such an outbox entry. Throws while something cannot be written, so that it is sent again. */
export async function exportSealedRun(
  {
    runs,
    exports,
    log,
  }: {
    runs: Pick<RunStore, 'everyRow' | 'receipts' | 'completeOutboxEntry' | 'completeExport'>;
    exports: Exports;
    log: Log;
  },
  { entryId, tenant, runId }: { entryId: string; tenant: string; runId: string },
): Promise<void> {
  const draft = new ExportDraft(exports.wanted);
  for await (const row of runs.everyRow(tenant, runId)) draft.take(row);
  for await (const receipt of receiptsOf(runs, tenant, draft.receiptKeys)) draft.takeReceipt(receipt);
  const { run } = draft;
  if (!run || !isTerminal(run)) {
    log.warn('asked to export a run that has not ended', { tenant, runId });
    return runs.completeOutboxEntry(entryId);
  }
  const { complete, artifacts } = await exportRun(exports, run, draft, log);
  if (!complete) throw new Error(`not all of ${runId} is exported`);
  if (artifacts.length === 0) return runs.completeOutboxEntry(entryId);
  await runs.completeExport(entryId, tenant, runId, artifacts);
}

/**
 * Writes each object once. If one fails, the others are written; exporting again writes only what is missing. Returns the
 * artifacts that are stored.
 */
export async function exportRun(
  stores: Pick<Exports, 'store' | 'artifacts'>,
  run: TerminalRun,
  draft: ExportDraft,
  log: Log,
): Promise<{ complete: boolean; artifacts: ArtifactReference[] }> {
  let complete = true;
  const artifacts: ArtifactReference[] = [];
  for (const { name, key, content, type } of draft.objects(run)) {
    try {
      await stores[name ? 'artifacts' : 'store'].putOnce(key, content, type);
      if (name) artifacts.push({ name, key, sha256: sha256Hex(content), sizeBytes: content.length });
    } catch (error) {
      log.warn('an export of a run failed and will be retried', { key, error });
      complete = false;
    }
  }
  return { complete, artifacts };
}

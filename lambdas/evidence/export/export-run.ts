import { type Clock, isoNow, type Log } from '../../entry/ports.ts';
import { newOutboxEntry, type OutboxEntry } from '../../outbox/outbox.ts';
import { sha256Hex } from '../../run/canonical-json.ts';
import type { Commit } from '../../run/commit.ts';
import { dayOf } from '../../run/log-entry.ts';
import type { Receipt } from '../../run/receipt.ts';
import { isTerminal, type Run, type TerminalRun } from '../../run/run.ts';
import type { ArtifactReference, RunRow, RunStore } from '../../run/run-store.ts';
import { endsRun } from '../../run/statuses/ended-run.ts';
import type { EvidenceStore } from '../evidence-store.ts';
import { receiptKeysIn, receiptsOf } from '../receipts-of-run.ts';
import { artifactKey, completionArtifact, enrichmentArtifact, stepArtifact } from './artifacts.ts';
import { siemBatchKey, siemKey, siemLines } from './siem.ts';
import { approvalValues, commitValues, receiptValues, stepValues, triggerValues, valuesDocument } from './values.ts';

/** The exports of a stage, and where they are stored. */
export interface Exports {
  store: EvidenceStore;
  /** Encrypts under the key of the values. */
  artifacts: EvidenceStore;
  wanted: readonly ('siem' | 'artifacts')[];
}

interface Artifact {
  name: ArtifactReference['name'];
  content: Buffer;
}

const NDJSON = 'application/x-ndjson';

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

  /** About what it keeps in memory. */
  get bytes(): number {
    const { trigger, ...lists } = this.#values;
    const parts = [...this.#steps, ...Object.values(lists).flat(), ...(trigger ? [trigger] : [])];
    return parts.reduce((sum, { length }) => sum + length, 0);
  }

  siemLines(run: TerminalRun): Buffer | undefined {
    return this.#wanted.includes('siem') ? siemLines(run, this.#commits) : undefined;
  }

  /** One by one, because together they may exceed the memory of a function. */
  *artifacts(run: TerminalRun): Generator<Artifact> {
    if (!this.#wanted.includes('artifacts')) return;
    if (run.enrichment) yield { name: 'enrichment', content: enrichmentArtifact(run.enrichment) };
    yield { name: 'completion', content: completionArtifact(run, this.#steps) };
    yield { name: 'values', content: valuesDocument(run, this.#values) };
  }
}

/** The artifacts of a run up to this size are lines of one object, those of a larger one objects of their own. */
const ONE_OBJECT_MAX_BYTES = 2 * 1024 * 1024;

interface Exporter {
  exports: Exports;
  clock: Clock;
  log: Log;
}

/**
 * Tries at once: the SIEM lines of all these runs of a tenant together, and the artifacts of each. A failed export becomes an
 * outbox entry of its run, so it delays nothing else.
 */
export async function exportTogether(
  { exports, clock, log }: Exporter,
  drafts: readonly { run: TerminalRun; exported: ExportDraft }[],
): Promise<{ artifacts: ArtifactReference[]; outboxEntries: OutboxEntry[] }[]> {
  const unsent = new Set<TerminalRun>();
  for (const sameDay of Map.groupBy(drafts, ({ run }) => dayOf(run.completedAt)).values()) {
    const lines = Buffer.concat(sameDay.flatMap(({ run, exported }) => exported.siemLines(run) ?? []));
    const [{ run: first }] = sameDay as [(typeof drafts)[number]];
    const isStored =
      lines.length === 0 || (await tryToPut(exports.store, siemBatchKey(first, lines), lines, NDJSON, log));
    if (!isStored) for (const { run } of sameDay) unsent.add(run);
  }
  return Promise.all(
    drafts.map(async ({ run, exported }) => {
      const { complete, artifacts } = await storeArtifacts(exports.artifacts, run, exported, log);
      const { tenant, runId } = run;
      const again = newOutboxEntry({ kind: 'export_run', tenant, runId }, isoNow(clock));
      return { artifacts, outboxEntries: complete && !unsent.has(run) ? [] : [again] };
    }),
  );
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

/** Writes each object once. If one fails, the others are written; exporting again writes only what is missing. */
export async function exportRun(
  { store, artifacts }: Pick<Exports, 'store' | 'artifacts'>,
  run: TerminalRun,
  draft: ExportDraft,
  log: Log,
): Promise<{ complete: boolean; artifacts: ArtifactReference[] }> {
  const lines = draft.siemLines(run);
  const isSent = lines === undefined || (await tryToPut(store, siemKey(run), lines, NDJSON, log));
  const stored = await storeArtifacts(artifacts, run, draft, log);
  return { complete: isSent && stored.complete, artifacts: stored.artifacts };
}

/** Returns the artifacts that are stored. */
async function storeArtifacts(
  store: EvidenceStore,
  run: TerminalRun,
  draft: ExportDraft,
  log: Log,
): Promise<{ complete: boolean; artifacts: ArtifactReference[] }> {
  const refer = ({ name, content }: Artifact) => ({ name, sha256: sha256Hex(content), sizeBytes: content.length });
  if (draft.bytes <= ONE_OBJECT_MAX_BYTES) {
    const lines: Buffer[] = [];
    const places: Omit<ArtifactReference, 'key'>[] = [];
    let offset = 0;
    for (const artifact of draft.artifacts(run)) {
      places.push({ ...refer(artifact), offset });
      lines.push(artifact.content, Buffer.from('\n'));
      offset += artifact.content.length + 1;
    }
    const content = Buffer.concat(lines);
    // With its hash: an object that is left from a crash, perhaps of an earlier release, may have other lines.
    const key = artifactKey(run, `${sha256Hex(content)}.jsonl`);
    const complete = lines.length === 0 || (await tryToPut(store, key, content, NDJSON, log));
    return { complete, artifacts: complete ? places.map((place) => ({ ...place, key })) : [] };
  }
  let complete = true;
  const artifacts: ArtifactReference[] = [];
  for (const artifact of draft.artifacts(run)) {
    const key = artifactKey(run, `${artifact.name}.json`);
    if (await tryToPut(store, key, artifact.content, 'application/json', log))
      artifacts.push({ ...refer(artifact), key });
    else complete = false;
  }
  return { complete, artifacts };
}

/** False if the object cannot be written now. */
async function tryToPut(store: EvidenceStore, key: string, content: Buffer, type: string, log: Log): Promise<boolean> {
  try {
    await store.putOnce(key, content, type);
    return true;
  } catch (error) {
    log.warn('an export of a run failed and will be retried', { key, error });
    return false;
  }
}

import { type Clock, isoNow, type Log } from '../../entry/ports.ts';
import { newOutboxEntry, type OutboxEntry } from '../../outbox/outbox.ts';
import type { Commit } from '../../run/commit.ts';
import { endsRun } from '../../run/ended-run.ts';
import { isTerminal, type Run, type TerminalRun } from '../../run/run.ts';
import type { RunRow, RunStore } from '../../run/run-store.ts';
import type { EvidenceStore } from '../evidence-store.ts';
import { artifactKey, completionArtifact, enrichmentArtifact, stepArtifact } from './artifacts.ts';
import { siemKey, siemLines } from './siem.ts';

/** The exports of a stage, and where they are stored. */
export interface Exports {
  store: EvidenceStore;
  wanted: readonly ('siem' | 'artifacts')[];
}

interface ExportedObject {
  key: string;
  content: Buffer;
  type: string;
}

/** Reads a run row by row and stores what is exported. */
export class ExportDraft {
  readonly #wanted: Exports['wanted'];
  readonly #commits: Commit[] = [];
  readonly #steps: Buffer[] = [];
  #hasEnded = false;
  #run: Run | undefined;

  constructor(wanted: Exports['wanted']) {
    this.#wanted = wanted;
  }

  take(row: RunRow): void {
    if (row.kind === 'run') this.#run = row.run;
    if (row.kind === 'commit' && this.#wanted.includes('siem') && !this.#hasEnded) this.#commits.push(row.commit);
    // Commits after the end are exported with their addenda.
    if (row.kind === 'commit' && endsRun(row.commit)) this.#hasEnded = true;
    if (row.kind === 'step' && this.#wanted.includes('artifacts')) this.#steps.push(stepArtifact(row.step));
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
      yield { key: artifactKey(run, 'enrichment'), content: enrichmentArtifact(run.enrichment), type };
    }
    yield { key: artifactKey(run, 'completion'), content: completionArtifact(run, this.#steps), type };
  }
}

/** Tries at once. A failed export becomes an outbox entry, so it delays nothing else. */
export async function exportOrEnqueue(
  { exports, clock, log }: { exports: Exports; clock: Clock; log: Log },
  run: TerminalRun,
  draft: ExportDraft,
): Promise<OutboxEntry[]> {
  if (await exportRun(exports, run, draft, log)) return [];
  const { tenant, runId } = run;
  return [newOutboxEntry({ kind: 'export_run', tenant, runId }, isoNow(clock))];
}

/** Completes such an outbox entry. Throws while something cannot be written, so that it is sent again. */
export async function exportSealedRun(
  { runs, exports, log }: { runs: Pick<RunStore, 'everyRow' | 'completeOutboxEntry'>; exports: Exports; log: Log },
  { entryId, tenant, runId }: { entryId: string; tenant: string; runId: string },
): Promise<void> {
  const draft = new ExportDraft(exports.wanted);
  for await (const row of runs.everyRow(tenant, runId)) draft.take(row);
  const { run } = draft;
  if (!run || !isTerminal(run)) log.warn('asked to export a run that has not ended', { tenant, runId });
  else if (!(await exportRun(exports, run, draft, log))) throw new Error(`not all of ${runId} is exported`);
  await runs.completeOutboxEntry(entryId);
}

/**
 * Writes each object once. False if one failed; the others are written. Exporting again writes only what is missing.
 */
export async function exportRun(
  { store }: Pick<Exports, 'store'>,
  run: TerminalRun,
  draft: ExportDraft,
  log: Log,
): Promise<boolean> {
  let complete = true;
  for (const { key, content, type } of draft.objects(run)) {
    try {
      await store.putOnce(key, content, type);
    } catch (error) {
      log.warn('an export of a run failed and will be retried', { key, error });
      complete = false;
    }
  }
  return complete;
}

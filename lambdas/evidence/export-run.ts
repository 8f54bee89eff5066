import { type Clock, isoNow, type Log } from '../entry/ports.ts';
import { type OutboxEntry, promised } from '../outbox/outbox.ts';
import { isTerminal, type TerminalRun } from '../run/run.ts';
import type { RunStore, WholeRun } from '../run/run-store.ts';
import { artifactKey, completionArtifact, enrichmentArtifact } from './artifacts.ts';
import type { EvidenceStore } from './evidence-store.ts';
import { siemKey, siemLines } from './siem.ts';

/** What others read of a finished run, where it goes, and which of it the stage wants. */
export interface Exports {
  store: EvidenceStore;
  wanted: readonly ('siem' | 'artifacts')[];
}

/** Tries at once. What fails is promised, so that it holds nothing up but itself. */
export async function exportOrPromise(
  { exports, clock, log }: { exports: Exports; clock: Clock; log: Log },
  run: TerminalRun,
  whole: WholeRun,
): Promise<OutboxEntry[]> {
  if (await exportRun(exports, run, whole, log)) return [];
  const { tenant, runId } = run;
  return [promised({ kind: 'export_run', tenant, runId }, isoNow(clock))];
}

/** Keeps such a promise; throws, to be asked again, while something cannot be written. */
export async function exportSealedRun(
  { runs, exports, log }: { runs: Pick<RunStore, 'loadWhole' | 'fulfilled'>; exports: Exports; log: Log },
  { entryId, tenant, runId }: { entryId: string; tenant: string; runId: string },
): Promise<void> {
  const whole = await runs.loadWhole(tenant, runId);
  if (!whole || !isTerminal(whole.run)) log.warn('asked to export a run that has not ended', { tenant, runId });
  else if (!(await exportRun(exports, whole.run, whole, log))) throw new Error(`not all of ${runId} is exported`);
  await runs.fulfilled(entryId);
}

/**
 * Each object is written once and waits for no other. False if one is not written: that holds nothing up but itself, and
 * exporting again writes only what is missing.
 */
export async function exportRun(exports: Exports, run: TerminalRun, whole: WholeRun, log: Log): Promise<boolean> {
  const { store, wanted } = exports;
  const objects = [
    ...(wanted.includes('siem') ? [siemObject(run, whole)] : []),
    ...(wanted.includes('artifacts') ? artifactObjects(run, whole) : []),
  ];
  const written = objects.map(async ({ key, content, type }) => {
    try {
      await store.putOnce(key, content, type);
      return true;
    } catch (error) {
      log.warn('an export of a run failed and will be tried again', { key, error });
      return false;
    }
  });
  return (await Promise.all(written)).every(Boolean);
}

const siemObject = (run: TerminalRun, { commits }: WholeRun) => ({
  key: siemKey(run),
  content: siemLines(run, commits),
  type: 'application/x-ndjson',
});

function artifactObjects(run: TerminalRun, { steps }: WholeRun) {
  const type = 'application/json';
  const completion = { key: artifactKey(run, 'completion'), content: completionArtifact(run, steps), type };
  if (!run.enrichment) return [completion];
  return [{ key: artifactKey(run, 'enrichment'), content: enrichmentArtifact(run.enrichment), type }, completion];
}
